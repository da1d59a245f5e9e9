import { randomUUID } from 'node:crypto'
import { parseKafkaClusters } from '../../server/src/config/kafka-clusters.ts'
import { mapSecrets } from '../../server/src/core/kafka/cluster.ts'
import { createKafka } from '../../server/src/drivers/kafka/create-kafka.ts'
import type { Kafka } from '../../server/src/drivers/kafka/kafka.ts'
import type { Engine } from '../../server/src/engine/engine.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import { createSystemClock } from '../../server/src/system-clock.ts'

/** The Kafka driver of a server, with the default intervals, for one dead-letter topic. */
export function startDriver(
  brokers: readonly string[],
  engine: Engine,
  storage: Storage,
  topic: string,
): Kafka {
  const clusters = JSON.stringify({ bench: { brokers, topics: [topic], group: `bridge-${topic}` } })
  const kafka = createKafka({
    clusters: parseKafkaClusters(clusters).map((cluster) =>
      mapSecrets(cluster, (secret) => async () => secret.reveal()),
    ),
    engine: () => engine,
    storage: () => storage,
    clock: createSystemClock(),
    owner: randomUUID(),
    intervals: {
      discoveryMs: 30_000,
      proofMs: 1_000,
      proofGraceMs: 10_000,
      proofTimeoutMs: 3_600_000,
      lagMs: 10_000,
      backoffMsMax: 1_000,
    },
    log: { info: () => {}, warn: (fields, sentence) => console.error(sentence, fields) },
  })
  kafka.start()
  return kafka
}
