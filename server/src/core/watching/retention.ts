/** Dead-letter topics whose unread records Kafka removes soon. */
import type { Instant } from '../time/instant.ts'
import type { Finding, Severity } from './findings.ts'

export type LosingTopicFact = Readonly<{ cluster: string; topic: string; unreadCount: number }>

/** `sinceOf`: since when the finding with this severity exists; a new one exists since now. */
export function findLosingTopics(
  topics: readonly LosingTopicFact[],
  sinceOf: (subject: string, severity: Severity) => Instant,
): readonly Finding[] {
  return topics.map(({ cluster, topic, unreadCount }) => {
    const subject = `${cluster}/${topic}`
    const message =
      `Redrive has not read ${unreadCount} records of dead-letter topic ${topic} of cluster ${cluster}, ` +
      'and Kafka removes them soon, at the end of the retention of the topic'
    const since = sinceOf(subject, 'WARNING')
    return { rule: 'kafka-retention', severity: 'WARNING', subject, namespace: '_system', since, message }
  })
}
