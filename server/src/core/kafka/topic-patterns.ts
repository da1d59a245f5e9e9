/**
 * Decides which topics are dead-letter topics, where their records came from, and how they are classified.
 */

/** The endings of dead-letter topics: of this project's envelope, of Spring Kafka and of Kafka Connect. */
export const deadTopicEndings = ['.dlq', '-dlq', '-dlt', '.DLT', '.dlt', '.dlq.v1'] as const
export const deadTopicPatterns: readonly string[] = deadTopicEndings.map((ending) => `*${ending}`)

/** `*` matches any characters, also none. Everything else matches itself. */
export function matchesPattern(pattern: string, topic: string): boolean {
  return compile(pattern).test(topic)
}

export function matchesAny(patterns: readonly string[], topic: string): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, topic))
}

const compiled = new Map<string, RegExp>()

function compile(pattern: string): RegExp {
  let expression = compiled.get(pattern)
  if (expression === undefined) {
    const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
    expression = new RegExp(`^${parts.join('.*')}$`, 's')
    compiled.set(pattern, expression)
  }
  return expression
}

/** The topic that the records of a dead-letter topic came from, by its name; null: the name does not say. */
export function sourceOfDeadTopic(deadTopic: string): string | null {
  const ending = deadTopicEndings.find((each) => deadTopic.endsWith(each))
  const source = ending === undefined ? '' : deadTopic.slice(0, -ending.length)
  return source === '' ? null : source
}

/** Whether a redrive must never go to this topic. */
export function isDeadLetterTopic(topic: string, patterns: readonly string[]): boolean {
  return matchesAny(deadTopicPatterns, topic) || matchesAny(patterns, topic)
}

export type ClassRule = Readonly<{ topics: string; letterClass: string }>

/** The class of a topic: of the first rule that matches the dead-letter topic or its source topic. */
export function classifyTopic(rules: readonly ClassRule[], deadTopic: string, classDefault: string): string {
  const names = [deadTopic, sourceOfDeadTopic(deadTopic) ?? deadTopic]
  const rule = rules.find(({ topics }) => names.some((name) => matchesPattern(topics, name)))
  return rule?.letterClass ?? classDefault
}
