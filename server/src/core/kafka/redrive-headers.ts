/**
 * The names that Redrive and its consumers agree on in Kafka: the headers of a redriven record, and the name
 * of the side topic that only the failing group reads. docs/kafka.md describes them for consumers in any
 * language.
 */

export const redriveHeaders = {
  /** The id of the letter, 27 characters. It stays the same through all redrives of a letter. */
  letterId: 'redrive-letter-id',
  /** Ordinal of this redrive of the letter, starting at 1, as decimal digits. */
  attempt: 'redrive-attempt',
  /** The consumer group that failed. Consumers of other groups should skip the record. */
  targetGroup: 'redrive-target-group',
} as const

const names: ReadonlySet<string> = new Set(Object.values(redriveHeaders))

export function isRedriveHeader(name: string): boolean {
  return names.has(name)
}

/** Kafka accepts names of at most this length. */
export const topicNameMax = 249

/** The side topic that only this group subscribes to. */
export function nameSideTopic(topic: string, group: string): string {
  return `${topic}.redrive.${toTopicPart(group)}`
}

/** Topic names have fewer characters than group names. */
function toTopicPart(group: string): string {
  return group.replaceAll(/[^a-zA-Z0-9._-]/g, '_')
}

/** The topic that a side topic belongs to; null: it is no side topic. */
export function sourceOfSideTopic(topic: string): string | null {
  const at = topic.lastIndexOf('.redrive.')
  return at > 0 ? topic.slice(0, at) : null
}
