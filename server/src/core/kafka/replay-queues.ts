/**
 * A redrive to Kafka goes through a queue of this store: the redriven item waits there until the Kafka driver
 * leases it and sends it. So redrives, campaigns and automatic redrives need to know nothing about Kafka, and
 * a redrive waits in its queue while the cluster is down. Each cluster has one queue for each way to send.
 */
import type { QueueName } from '../ids.ts'

/**
 * - `topic`: to the original topic, and refused if other consumer groups read it too.
 * - `forced`: to the original topic, although other consumer groups see the record again.
 * - `header`: to the original topic; consumers of other groups skip the record by its header.
 * - `side-topic`: to the side topic of the group that failed.
 */
export const replayModes = ['topic', 'forced', 'header', 'side-topic'] as const
export type ReplayMode = (typeof replayModes)[number]

export function nameReplayQueue(cluster: string, mode: ReplayMode): QueueName {
  return `kafka.${cluster}.replay${mode === 'topic' ? '' : `-${mode}`}`
}

/** Null: the queue is not one of a cluster. Names of clusters contain no dots. */
export function parseReplayQueue(name: QueueName): Readonly<{ cluster: string; mode: ReplayMode }> | null {
  const [, cluster, mode = 'topic'] = /^kafka\.([^.]+)\.replay(?:-([a-z-]+))?$/.exec(name) ?? []
  const known = replayModes.find((each) => each === mode)
  return cluster === undefined || known === undefined ? null : { cluster, mode: known }
}
