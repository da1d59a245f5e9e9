/**
 * Keeps a bridge to a cluster running: starts a session, and after an error the next one, with growing
 * pauses. A cluster that does not answer affects nothing but its own state.
 */
import { usPerMs } from '../../../core/time/instant.ts'
import { BridgeSession, pause } from '../bridge/bridge-session.ts'
import type { ClaimedPartition } from '../bridge/claimed-partition.ts'
import type { Cluster, KafkaParts } from '../parts.ts'
import { type ClusterState, createClusterState } from './cluster-state.ts'
import { describeKafkaError } from './describe-error.ts'

export interface ClusterBridge {
  readonly cluster: Cluster
  start(): void
  stop(): Promise<void>
  state(): ClusterState
  /** The partitions that this server reads now. */
  partitions(): readonly ClaimedPartition[]
  topics(): readonly string[]
}

const backoffMsMin = 250
/** A session that was up for this long starts the pauses again at the shortest. */
const steadyUs = 60_000 * usPerMs

export function createClusterBridge(cluster: Cluster, parts: KafkaParts): ClusterBridge {
  const { clock, log, intervals } = parts
  const state = createClusterState(clock)
  const stopping = new AbortController()
  let session: BridgeSession | undefined
  let running: Promise<void> | undefined

  const events = {
    onUp: () => {
      if (state.set('up')) log.info({ cluster: cluster.name }, 'the Kafka cluster is up')
    },
    onIngested: () => {},
    onLost: ({ topic, partition }: ClaimedPartition, problem: 'removed' | 'truncated', count: number) =>
      log.warn(
        { cluster: cluster.name, topic, partition, records: count },
        problem === 'removed'
          ? 'KAFKA REMOVED RECORDS before they were read: the retention of the dead-letter topic is too short'
          : 'the dead-letter topic ends before the position of the bridge: Kafka has lost records',
      ),
    onStoreFailed: (error: unknown) =>
      log.warn({ cluster: cluster.name, err: error }, 'dead records could not be stored; will retry'),
  }
  const run = async (): Promise<void> => {
    let waitMs = backoffMsMin
    while (!stopping.signal.aborted) {
      const startedAt = clock.now()
      session = new BridgeSession(cluster, parts, events)
      try {
        await session.run(stopping.signal)
      } catch (error) {
        const reason = describeKafkaError(error)
        if (state.set('down', reason))
          log.warn({ cluster: cluster.name, reason }, 'the Kafka cluster cannot be used; will retry')
      }
      if (clock.now() - startedAt > steadyUs) waitMs = backoffMsMin
      await pause(waitMs, stopping.signal)
      waitMs = Math.min(waitMs * 2, intervals.backoffMsMax)
    }
  }
  return {
    cluster,
    start: () => {
      running ??= run()
    },
    stop: async () => {
      stopping.abort()
      await running
    },
    state: () => state.get(),
    partitions: () => session?.list() ?? [],
    topics: () => session?.topics ?? [],
  }
}
