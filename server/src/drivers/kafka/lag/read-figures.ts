/**
 * Reads the figures of a cluster: dead-letter topics, the progress of the bridge, and the lag of all groups.
 */
import { type Consumer, ListOffsetTimestamps } from '@platformatic/kafka'
import type { KafkaPosition } from '../../../storage/contract/kafka.ts'
import { listDeadTopics, nameDeadQueue } from '../bridge/dead-topics.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'
import type { DeadTopicFigures, GroupLag, KafkaClusterFigures } from '../kafka.ts'
import type { Cluster, KafkaParts } from '../parts.ts'
import type { GroupOffset } from './group-offsets.ts'
import { type RetentionReader, readLosingSoon } from './retention.ts'

/** More series than this would burden the monitoring system. The groups with the most lag are kept. */
export const lagsMax = 500
const topicsMax = 500

type Ends = ReadonlyMap<string, readonly bigint[]>

/** `positions`: those that were read last. */
export type PreviousFigures = Readonly<{
  at: number
  records: ReadonlyMap<string, number>
  positions: readonly KafkaPosition[]
}>
export type ReadFigures = Readonly<{ figures: KafkaClusterFigures; positions: readonly KafkaPosition[] }>

export async function readFigures(
  cluster: Cluster,
  clients: ClusterClients,
  parts: KafkaParts,
  retention: RetentionReader,
  previous: PreviousFigures | undefined,
): Promise<ReadFigures> {
  const [admin, reader] = await Promise.all([clients.admin(), clients.reader()])
  const deadTopics = (await listDeadTopics(admin, cluster)).slice(0, topicsMax)
  const positions = await readPositions(cluster, parts, previous)
  const offsets = await clients.groupOffsets.read(parts.intervals.lagMs / 2)
  const allTopics = new Set(await admin.listTopics({ includeInternals: false }))
  const lagTopics = [...new Set(offsets.map(({ topic }) => topic))].filter((topic) => allTopics.has(topic))
  const wanted = [...new Set([...deadTopics, ...lagTopics.slice(0, topicsMax)])]
  reader.clearMetadata()
  const [earliest, latest] = await Promise.all([
    readOffsets(reader, deadTopics, ListOffsetTimestamps.EARLIEST),
    readOffsets(reader, wanted, ListOffsetTimestamps.LATEST),
  ])
  const nowMs = performance.now()
  const topics = await Promise.all(
    deadTopics.map(async (topic) => {
      const own = positions.filter((each) => each.topic === topic)
      const figures = sumTopic(cluster, topic, own, earliest, latest, previous, nowMs)
      const retentionMs = await retention.read(admin, topic)
      const isLosingSoon = await readLosingSoon(reader, figures, retentionMs, parts.clock.now())
      return { ...figures, retentionMs, isLosingSoon }
    }),
  )
  const lags = sumLags(offsets, latest)
  const figures = {
    cluster: cluster.name,
    readAt: parts.clock.now(),
    topics,
    groups: lags.slice(0, lagsMax),
    omittedCount: Math.max(0, lags.length - lagsMax),
  }
  return { figures, positions }
}

/** While the store does not answer, nothing is read: the last positions are the current ones. */
async function readPositions(
  { name: cluster, group }: Cluster,
  { storage }: KafkaParts,
  previous: PreviousFigures | undefined,
): Promise<readonly KafkaPosition[]> {
  try {
    return await storage().listKafkaPositions({ cluster, group })
  } catch (error) {
    if (previous === undefined) throw error
    return previous.positions
  }
}

async function readOffsets(reader: Consumer, topics: readonly string[], timestamp: bigint): Promise<Ends> {
  return topics.length === 0 ? new Map() : reader.listOffsets({ topics: [...topics], timestamp })
}

function sumTopic(
  cluster: Cluster,
  topic: string,
  positions: readonly KafkaPosition[],
  earliest: Ends,
  latest: Ends,
  previous: PreviousFigures | undefined,
  nowMs: number,
): Omit<DeadTopicFigures, 'retentionMs' | 'isLosingSoon'> {
  const byPartition = new Map(positions.map((each) => [each.partition, each]))
  const partitions = (latest.get(topic) ?? []).map((end, partition) => ({
    partition,
    earliest: Number(earliest.get(topic)?.[partition] ?? 0n),
    end: Number(end),
    position: byPartition.get(partition)?.nextOffset ?? null,
  }))
  const recordCount = positions.reduce((sum, each) => sum + each.recordCount, 0)
  const before = previous?.records.get(topic)
  const seconds = previous === undefined ? 0 : (nowMs - previous.at) / 1_000
  const grown = before === undefined ? 0 : Math.max(0, recordCount - before)
  return {
    topic,
    queue: nameDeadQueue(cluster, topic),
    partitionCount: partitions.length,
    unreadCount: partitions.reduce(
      (sum, each) => sum + Math.max(0, each.end - Math.max(each.position ?? 0, each.earliest)),
      0,
    ),
    recordCount,
    recordsPerSecond: seconds > 0 ? grown / seconds : 0,
    partitions,
  }
}

/** The groups with the most lag first. */
function sumLags(offsets: readonly GroupOffset[], latest: Ends): readonly GroupLag[] {
  const sums = new Map<string, GroupLag>()
  for (const { group, topic, partition, committed } of offsets) {
    const end = latest.get(topic)?.[partition]
    if (end === undefined) continue
    const key = `${group}\n${topic}`
    const lag = (sums.get(key)?.lag ?? 0) + Math.max(0, Number(end) - committed)
    sums.set(key, { group, topic, lag })
  }
  return [...sums.values()].sort((a, b) => b.lag - a.lag || (a.group < b.group ? -1 : 1))
}
