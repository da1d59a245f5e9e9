/** The record that a worker writes to the dead-letter topic. */
import type { Attempts } from '../partitions/attempts.ts'
import { isRedriveHeader, type KafkaRecord } from './kafka-record.ts'

export type DeadLetterFacts = Readonly<{
  record: KafkaRecord
  attempts: Attempts
  group: string
  instanceId: string
}>

export type DeadLetterRecord = Readonly<{
  key: Buffer | null
  value: Buffer | null
  headers: readonly (readonly [name: string, value: Buffer | null])[]
}>

const stackMax = 500
const messageMax = 4_000

/**
 * The envelope. A value that is a JSON object or list is written as it is; other text as text, and bytes that
 * are not UTF-8 as base64. Redrive restores exactly the bytes of the original record.
 */
export function toEnvelope(facts: DeadLetterFacts): DeadLetterRecord {
  const { record } = facts
  const { attempts, group, instanceId } = facts
  const error = attempts.error ?? { name: '', message: '', stack: '' }
  const fields: readonly (readonly [name: string, json: string])[] = [
    ['original_topic', JSON.stringify(record.topic)],
    ['original_partition', String(record.partition)],
    ['original_offset', String(record.offset)],
    ['original_timestamp', JSON.stringify(toTime(record.timestampMs))],
    ['original_key', toJson(record.key, false)],
    ['original_value', toJson(record.value, true)],
    [
      'error_details',
      JSON.stringify({
        exception_class: error.name,
        message: error.message.slice(0, messageMax),
        stack_trace: error.stack.slice(0, stackMax),
      }),
    ],
    ['retry_count', String(Math.max(attempts.failed - 1, 0))],
    ['worker_instance', JSON.stringify(instanceId)],
    ['first_failure_at', JSON.stringify(toTime(attempts.firstFailedAtMs))],
    ['last_failure_at', JSON.stringify(toTime(attempts.lastFailedAtMs))],
    ['consumer_group', JSON.stringify(group)],
    ['headers', toHeadersJson(record)],
  ]
  const text = `{${fields.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
  return {
    key: record.key,
    value: Buffer.from(text),
    headers: record.headers.filter(([name]) => isRedriveHeader(name)),
  }
}

/**
 * The original value with the failure in headers, as Spring Kafka writes it: for records that are too large
 * for an envelope, and for tombstones, which have no value.
 */
export function toPlainDeadLetter({ record, attempts, group }: DeadLetterFacts): DeadLetterRecord {
  const error = attempts.error ?? { name: '', message: '', stack: '' }
  const text = (value: string) => Buffer.from(value)
  const place = Buffer.alloc(4)
  place.writeInt32BE(record.partition)
  const long = (value: number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64BE(BigInt(Math.max(Math.trunc(value), 0)))
    return bytes
  }
  return {
    key: record.key,
    value: record.value,
    headers: [
      ...record.headers,
      ['kafka_dlt-original-topic', text(record.topic)],
      ['kafka_dlt-original-partition', place],
      ['kafka_dlt-original-offset', long(record.offset)],
      ['kafka_dlt-original-timestamp', long(record.timestampMs)],
      ['kafka_dlt-original-consumer-group', text(group)],
      ['kafka_dlt-exception-fqcn', text(error.name)],
      ['kafka_dlt-exception-message', text(error.message.slice(0, messageMax))],
      ['kafka_dlt-exception-stacktrace', text(error.stack.slice(0, stackMax))],
    ],
  }
}

/** Redrive's own headers are headers of the dead record itself, not of the envelope. */
function toHeadersJson(record: KafkaRecord): string {
  const own = record.headers.filter(([name]) => !isRedriveHeader(name))
  return `[${own.map(([name, value]) => `{"name":${JSON.stringify(name)},"value":${toJson(value, false)}}`).join(',')}]`
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function toJson(bytes: Buffer | null, canBeJson: boolean): string {
  if (bytes === null) return 'null'
  const text = decode(bytes)
  if (text === undefined) return JSON.stringify({ base64: bytes.toString('base64') })
  return canBeJson && isJsonDocument(text) ? text : JSON.stringify(text)
}

function decode(bytes: Buffer): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * An object or a list, which the envelope can contain as it is. `{"base64": …}` and `{"text": …}` would be
 * read as the name of an encoding.
 */
function isJsonDocument(text: string): boolean {
  const isBracketed = /^[{[]/.test(text) && /[}\]]$/.test(text)
  if (!isBracketed || isNestedTooDeep(text)) return false
  try {
    const json: unknown = JSON.parse(text)
    const names = Object.keys(json as object)
    return Array.isArray(json) || names.length !== 1 || (names[0] !== 'base64' && names[0] !== 'text')
  } catch {
    return false
  }
}

const depthMax = 30

/** Counts brackets in strings too: such a value is written as text, which is as good. */
function isNestedTooDeep(text: string): boolean {
  let depth = 0
  for (const character of text) {
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    if (depth > depthMax) return true
  }
  return false
}

function toTime(ms: number): string {
  return new Date(Math.min(Math.max(ms, 0), 8.64e15)).toISOString()
}
