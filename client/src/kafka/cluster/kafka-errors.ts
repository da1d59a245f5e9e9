/** Errors of the Kafka client, which come as trees. */

/** Whether Kafka answered with this error, for example `UNKNOWN_TOPIC_OR_PARTITION`. */
export function hasKafkaError(error: unknown, ...names: readonly string[]): boolean {
  if (!(error instanceof Error)) return false
  const { apiId, errors = [], cause } = error as Error & { apiId?: unknown; errors?: readonly unknown[] }
  if (typeof apiId === 'string' && names.includes(apiId)) return true
  return errors.some((each) => hasKafkaError(each, ...names)) || hasKafkaError(cause, ...names)
}

/** The client has an error of its own for a topic that is not in its metadata. */
export function isUnknownTopic(error: unknown): boolean {
  if (hasKafkaError(error, 'UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID')) return true
  if (!(error instanceof Error)) return false
  const { errors = [], cause } = error as Error & { errors?: readonly unknown[] }
  return error.message.startsWith('Unknown topic ') || errors.some(isUnknownTopic) || isUnknownTopic(cause)
}
