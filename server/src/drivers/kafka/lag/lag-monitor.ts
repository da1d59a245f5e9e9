import { createLoop, type Loop } from '../../../engine/loop.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'
import { describeKafkaError } from '../cluster/describe-error.ts'
import type { KafkaClusterFigures } from '../kafka.ts'
import type { Cluster, KafkaParts } from '../parts.ts'
import { type PreviousFigures, readFigures } from './read-figures.ts'
import { createRetentionReader } from './retention.ts'

export interface LagMonitor {
  readonly loop: Loop
  figures(): KafkaClusterFigures
}

/** Reads the figures of a cluster repeatedly. While Kafka does not answer, the last ones stay. */
export function createLagMonitor(cluster: Cluster, clients: ClusterClients, parts: KafkaParts): LagMonitor {
  const retention = createRetentionReader()
  const warned = new Set<string>()
  let figures: KafkaClusterFigures = {
    cluster: cluster.name,
    readAt: null,
    topics: [],
    groups: [],
    omittedCount: 0,
  }
  let previous: PreviousFigures | undefined
  let failures = 0

  const warnOnce = (): void => {
    for (const { topic, isLosingSoon, unreadCount } of figures.topics) {
      if (!isLosingSoon) warned.delete(topic)
      else if (!warned.has(topic)) {
        warned.add(topic)
        parts.log.warn(
          { cluster: cluster.name, topic, records: unreadCount },
          'UNREAD RECORDS ARE CLOSE TO THE RETENTION of their dead-letter topic: Kafka removes them soon',
        )
      }
    }
  }
  const loop = createLoop(
    () => Math.min(parts.intervals.lagMs * 2 ** failures, Math.max(parts.intervals.lagMs, 60_000)),
    async () => {
      const read = await readFigures(cluster, clients, parts, retention, previous)
      figures = read.figures
      previous = {
        at: performance.now(),
        positions: read.positions,
        records: new Map(figures.topics.map(({ topic, recordCount }) => [topic, recordCount])),
      }
      failures = 0
      warnOnce()
    },
    async (error) => {
      failures = Math.min(failures + 1, 8)
      if (failures === 1)
        parts.log.warn(
          { cluster: cluster.name, reason: describeKafkaError(error) },
          'the lag of consumer groups cannot be read now; will retry',
        )
      await clients.reset()
    },
  )
  return { loop, figures: () => figures }
}
