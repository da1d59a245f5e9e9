/** Everything that the conditions of rules look at. Its size is bounded by queues, findings and alerts. */
import type { GroupLifecycleState } from '../dead-letters/group-lifecycle.ts'
import type { Instant } from '../time/instant.ts'
import type { Finding } from '../watching/findings.ts'
import type { GroupKind, StoppedStatus } from './rule.ts'

/** A dead queue with unresolved letters. */
export type QueueFact = Readonly<{
  name: string
  namespace: string
  letterClass: string
  unresolvedCount: number
}>

/** A group with a notice, or about which there is an alert. */
export type GroupFact = Readonly<{
  id: number
  queue: string
  namespace: string
  letterClass: string
  title: string
  /** Open letters of the group. */
  count: number
  /** As of now. */
  state: GroupLifecycleState
  /** A notice that no alert has taken yet. */
  notice: Readonly<{ kind: GroupKind; at: Instant }> | null
}>

export type ConsumerFact = Readonly<{
  channelId: string
  consumerId: string
  status: StoppedStatus
  since: Instant
}>

export type TopicFact = Readonly<{
  cluster: string
  topic: string
  queue: string
  unreadCount: number
  isLosingSoon: boolean
}>

export type AlertFacts = Readonly<{
  now: Instant
  queues: readonly QueueFact[]
  /** When the oldest open letter died, of the queues for which a rule asks it. */
  oldest: ReadonlyMap<string, Instant>
  /** Open letters that died within a time, by `nameInflow`. */
  inflow: ReadonlyMap<string, number>
  groups: readonly GroupFact[]
  findings: readonly Finding[]
  /** The list has only the worst findings. */
  areFindingsCut: boolean
  /** Clusters whose figures are not known now. */
  unknownClusters: readonly string[]
  /** Consumers that get no pushes. */
  consumers: readonly ConsumerFact[]
  topics: readonly TopicFact[]
  countDrift: number
}>

export function nameInflow(queue: string, windowUs: number): string {
  return `${queue}\n${windowUs}`
}
