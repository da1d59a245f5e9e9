/**
 * The Kafka driver reads dead-letter topics into dead queues, sends redriven letters back, and finds out
 * whether they were processed.
 *
 * `cluster/` keeps the connection to a cluster. `bridge/` reads dead-letter topics. `replay/` sends redriven
 * letters, and `proof/` finds their outcome. `lag/` compares the offsets of consumer groups with their
 * topics.
 */

import type { ReplayMode } from '../../core/kafka/replay-queues.ts'
import type { Instant } from '../../core/time/instant.ts'

export interface Kafka {
  readonly clusters: readonly KafkaClusterFacts[]
  start(): void
  stop(): Promise<void>
  /** The state of each cluster, read without waiting. */
  health(): readonly KafkaClusterHealth[]
  /** The newest figures of each cluster, read without waiting. */
  listFigures(): readonly KafkaClusterFigures[]
  /**
   * The consumer groups that read a topic, without the group of the bridge. Rejects with KAFKA_UNAVAILABLE,
   * or with KAFKA_CLUSTER_NOT_FOUND for an unknown cluster.
   */
  listReaders(cluster: string, topic: string): Promise<readonly string[]>
}

/** The settings of a cluster that other layers use. */
export type KafkaClusterFacts = Readonly<{
  name: string
  brokers: readonly string[]
  /** The consumer group of the bridge. */
  group: string
  /** How a redrive is sent that does not say how. */
  replay: ReplayMode
  /** The dead queue of a dead-letter topic. */
  nameDeadQueue(topic: string): string
}>

export type KafkaClusterHealth = Readonly<{
  cluster: string
  isUp: boolean
  reason: string | null
  checkedAt: Instant
}>

export type KafkaClusterFigures = Readonly<{
  cluster: string
  /** Null: the figures were never read. */
  readAt: Instant | null
  topics: readonly DeadTopicFigures[]
  groups: readonly GroupLag[]
  /** Groups and topics that are left out, because there are too many. */
  omittedCount: number
}>

/** A dead-letter topic, summed over its partitions. */
export type DeadTopicFigures = Readonly<{
  topic: string
  queue: string
  partitionCount: number
  /** Records that are not read yet. */
  unreadCount: number
  /** Records that were read since the topic was first seen. */
  recordCount: number
  recordsPerSecond: number
  /** How long Kafka keeps records; null: forever, or unknown. */
  retentionMs: number | null
  /** Unread records have reached most of the retention, and Kafka removes them soon. */
  isLosingSoon: boolean
  partitions: readonly DeadPartitionFigures[]
}>
export type DeadPartitionFigures = Readonly<{
  partition: number
  earliest: number
  end: number
  /** The next record to read; null: none was read yet. */
  position: number | null
}>

/** The records of a topic that a consumer group has not committed yet, over all its partitions. */
export type GroupLag = Readonly<{ group: string; topic: string; lag: number }>
