/** The Kafka clusters of a server, from its settings, with their health and lag. */
import { randomUUID } from 'node:crypto'
import { mapSecrets } from './core/kafka/cluster.ts'
import { toDate } from './core/time/instant.ts'
import type { Tracing } from './core/trace/tracing.ts'
import type { LosingTopicFact } from './core/watching/retention.ts'
import { createKafka } from './drivers/kafka/create-kafka.ts'
import type { Kafka, KafkaClusterHealth } from './drivers/kafka/kafka.ts'
import type { HealthCheck } from './ops/health/health.ts'
import type { KafkaFigures, KafkaLag } from './ops/metrics/kafka-metrics.ts'
import type { ServerClock } from './server-clock.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'
export function createKafkaDriver(
  { settings, log, readSecret = async (given) => given }: ServerOptions,
  { connection, engine }: StoreParts,
  clock: ServerClock,
  tracing: Tracing | undefined,
): Kafka {
  return createKafka({
    clusters: settings['kafka.clusters'].map((cluster) =>
      mapSecrets(cluster, (secret) => async () => (await readSecret(secret)).reveal()),
    ),
    engine,
    storage: connection.storage,
    clock,
    owner: randomUUID(),
    intervals: {
      discoveryMs: settings['kafka.discovery_interval'],
      proofMs: settings['kafka.proof_interval'],
      proofGraceMs: settings['kafka.proof_grace'],
      proofTimeoutMs: settings['kafka.proof_timeout'],
      lagMs: settings['kafka.lag_interval'],
      backoffMsMax: settings['kafka.retry_backoff_max'],
    },
    ...(tracing !== undefined && { tracing }),
    log,
  })
}

export function listLags(kafka: Kafka): readonly KafkaLag[] {
  return kafka.listFigures().flatMap(({ cluster, groups }) => groups.map((each) => ({ cluster, ...each })))
}

export function listLosingTopics(kafka: Kafka): readonly LosingTopicFact[] {
  return kafka
    .listFigures()
    .flatMap(({ cluster, topics }) =>
      topics
        .filter(({ isLosingSoon }) => isLosingSoon)
        .map(({ topic, unreadCount }) => ({ cluster, topic, unreadCount })),
    )
}

/** A cluster that cannot be reached must not take the server out of service. */
export function toKafkaCheck({ cluster, isUp, reason, checkedAt }: KafkaClusterHealth): HealthCheck {
  const state = { isUp: true, isDegraded: !isUp, reason, checkedAt: toDate(checkedAt) }
  return { name: `kafka:${cluster}`, componentType: 'component', read: () => state }
}

export function toKafkaFigures(kafka: Kafka): KafkaFigures {
  return {
    listLags: () => listLags(kafka),
    listTopics: () =>
      kafka.listFigures().flatMap(({ cluster, topics }) => topics.map((each) => ({ cluster, ...each }))),
    listClusters: () => kafka.health(),
  }
}
