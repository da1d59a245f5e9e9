/**
 * The Kafka driver reads dead-letter topics into dead queues, sends redriven letters back, and
 * finds out whether they were processed.
 *
 * `cluster/` keeps the connection to a cluster. `bridge/` reads dead-letter topics. `replay/` sends redriven
 * letters, and `proof/` finds their outcome. `lag/` compares the offsets of consumer groups with their
 * topics.
 */
import type { Instant } from '../../core/instant.ts'

export interface Kafka {
  start(): void
  stop(): Promise<void>
  /** The state of each cluster, read without waiting. */
  health(): readonly KafkaClusterHealth[]
}

export type KafkaClusterHealth = Readonly<{
  cluster: string
  isUp: boolean
  reason: string | null
  checkedAt: Instant
}>
