/**
 * A redrive to Kafka goes through a queue of this store: the redriven item waits there until the Kafka driver
 * leases it and sends it. So redrives, campaigns and automatic redrives need to know nothing about Kafka, and
 * a redrive waits in its queue while the cluster is down. Each cluster has one queue for each way to send.
 */
import type { QueueName } from '../ids/ids.ts'

/**
 * - `topic`: to the original topic, and refused if other consumer groups read it too.
 * - `forced`: to the original topic, although other consumer groups see the record again.
 * - `header`: to the original topic; consumers of other groups skip the record by its header.
 * - `side-topic`: to the side topic of the group that failed.
 */
export const replayModes = ['topic', 'forced', 'header', 'side-topic'] as const
export type ReplayMode = (typeof replayModes)[number]

/** `default`: the mode that is set for the cluster. */
export type ReplayRequest = ReplayMode | 'default'
export const replayRequests: readonly ReplayRequest[] = ['default', ...replayModes]

export function nameReplayQueue(cluster: string, mode: ReplayRequest): QueueName {
  return `kafka.${cluster}.replay${mode === 'default' ? '' : `-${mode}`}`
}

/** Null: the queue is not one of a cluster. Names of clusters contain no dots. */
export function parseReplayQueue(name: QueueName): Readonly<{ cluster: string; mode: ReplayRequest }> | null {
  const [, cluster, mode = 'default'] = /^kafka\.([^.]+)\.replay(?:-([a-z-]+))?$/.exec(name) ?? []
  const known = replayRequests.find((each) => each === mode)
  return cluster === undefined || known === undefined ? null : { cluster, mode: known }
}

/** The reference of the dead queue of a topic. It tells where redrives of its letters go. */
export function createDeadQueueReference(cluster: string): string {
  return `kafka:${cluster}`
}

/** Null: the queue is not the dead queue of a topic. */
export function findClusterOfDeadQueue({ reference }: Readonly<{ reference: string }>): string | null {
  return /^kafka:([a-zA-Z0-9_-]{1,64})$/.exec(reference)?.[1] ?? null
}
