/** Errors of the Kafka client as one sentence. They come as trees of errors with general messages. */
import { KnownError } from '../../../errors.ts'

type ClientError = Error &
  Readonly<{ code?: unknown; apiId?: unknown; errors?: readonly Error[]; response?: unknown }>

/** All errors of the tree, the outermost first. */
export function listErrors(error: unknown): readonly ClientError[] {
  if (!(error instanceof Error)) return []
  const client = error as ClientError
  return [client, ...(client.errors ?? []).flatMap(listErrors), ...listErrors(client.cause)]
}

/** Whether Kafka answered with this error, for example `UNKNOWN_TOPIC_OR_PARTITION`. */
export function hasKafkaError(error: unknown, ...names: readonly string[]): boolean {
  return listErrors(error).some(({ apiId }) => typeof apiId === 'string' && names.includes(apiId))
}

/** The client has an error of its own for a topic that is not in its metadata. */
export function isUnknownTopic(error: unknown): boolean {
  return (
    hasKafkaError(error, 'UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID', 'INVALID_TOPIC_EXCEPTION') ||
    listErrors(error).some(({ message }) => message.startsWith('Unknown topic '))
  )
}

const textMax = 300

export function describeKafkaError(error: unknown): string {
  if (error instanceof KnownError) return error.message
  const errors = listErrors(error)
  const login = errors.find(
    ({ code, apiId }) => code === 'PLT_KFK_AUTHENTICATION' || apiId === 'SASL_AUTHENTICATION_FAILED',
  )
  const leaves = errors.filter((each) => (each.errors ?? []).length === 0 && each.cause === undefined)
  const reasons = [...new Set(leaves.map(describeOne))].slice(0, 3)
  const text = reasons.join('; ') || String(error)
  return `${login === undefined ? '' : 'the login was refused: '}${text}`.slice(0, textMax)
}

function describeOne({ message, apiId, code }: ClientError): string {
  const name =
    typeof apiId === 'string'
      ? `${apiId}: `
      : typeof code === 'string' && code.startsWith('E')
        ? `${code}: `
        : ''
  return `${name}${message}`.replaceAll(/\s+/g, ' ').trim()
}

export function kafkaUnavailable(cluster: string, error: unknown): KnownError {
  if (error instanceof KnownError) return error
  return new KnownError(
    'KAFKA_UNAVAILABLE',
    `Kafka cluster ${cluster} does not answer: ${describeKafkaError(error)}`,
    error,
  )
}
