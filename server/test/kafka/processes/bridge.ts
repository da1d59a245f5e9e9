/**
 * The Kafka driver in its own process, which kills itself at a write of dead records: before it, after it
 * (when the store has the records and Kafka does not know), or during it. Or at a redrive: `sent` is after
 * Kafka has acknowledged the records and before the store knows, `announced` before they are sent.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseKafkaClusters } from '../../../src/config/kafka-clusters.ts'
import { mapSecrets } from '../../../src/core/kafka/cluster.ts'
import { createKafka } from '../../../src/drivers/kafka/create-kafka.ts'
import { createEngine } from '../../../src/engine/create-engine.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Command } from '../../../src/storage/contract/storage.ts'
import { openStorage, type StoreTarget } from '../../../src/storage/open-storage.ts'
import { createSystemClock } from '../../../src/system-clock.ts'

export type BridgeTask = Readonly<{
  store: StoreTarget
  clusters: string
  /** Null: run until the parent ends the process. */
  kill: Readonly<{ at: 'before' | 'after' | 'during' | 'announced' | 'sent'; write: number }> | null
}>

const { store, clusters, kill } = JSON.parse(process.argv[2] ?? '{}') as BridgeTask
const clock = createSystemClock()
const storage = await openStorage(store, {})
const engine = createEngine(storage, { clock })
let writes = 0

const killSelf = (): void => void process.kill(process.pid, 'SIGKILL')
const killedAt: Readonly<Record<string, Command['op']>> = {
  announced: 'announce-kafka-replays',
  sent: 'record-kafka-replays',
}
const isKillable = (commands: readonly Command[]): boolean =>
  commands.some(({ op }) => op === (killedAt[kill?.at ?? ''] ?? 'advance-kafka-positions'))

const write = (async (commands: readonly Command[]) => {
  const isKilled = isKillable(commands) && ++writes === kill?.write
  if (isKilled && (kill.at === 'before' || kill.at === 'sent')) killSelf()
  const writing = engine.write(commands)
  if (isKilled && kill.at === 'during') {
    await sleep(Math.random() * 5)
    killSelf()
  }
  const results = await writing
  if (isKilled) killSelf()
  return results
}) as Engine['write']

createKafka({
  clusters: parseKafkaClusters(clusters).map((cluster) =>
    mapSecrets(cluster, (secret) => async () => secret.reveal()),
  ),
  engine: () => ({ ...engine, write }),
  storage: () => storage,
  clock,
  owner: String(process.pid),
  intervals: {
    discoveryMs: 500,
    proofMs: 100,
    proofGraceMs: 100,
    proofTimeoutMs: 60_000,
    lagMs: 1_000,
    backoffMsMax: 500,
  },
  log: { info: () => {}, warn: (fields, sentence) => console.error(sentence, fields) },
}).start()
