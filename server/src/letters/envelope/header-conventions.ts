/**
 * Reads the failure headers that tools add when they move records to dead-letter topics: Spring Kafka, Kafka
 * Connect, share groups (KIP-1191), Kafka Streams (KIP-1034), Spring Cloud Stream, `x-…` names, and plain
 * `original_topic` and `error`.
 *
 * The origin is read from the headers of one tool only, and so is the failure: mixing two tools could name a
 * record that never existed. Fields of the envelope itself take precedence over headers.
 */
import type { Header } from '../../core/items/item.ts'
import { Fields, type Json, Problems } from './fields.ts'

/** Fields of an envelope, each with the header that holds it. */
type OriginHeaders = Readonly<{
  original_topic: string
  original_partition?: string
  original_offset?: string
  original_timestamp?: string
  consumer_group?: string
}>
type Death = Readonly<{
  exception_class?: readonly string[]
  message: readonly string[]
  stack_trace?: string
  retry_count?: string
  last_failure_at?: string
}>
type Tool = Readonly<{ originHeaders: OriginHeaders; death: Death }>

const tools: readonly Tool[] = [
  {
    originHeaders: {
      original_topic: 'kafka_dlt-original-topic',
      original_partition: 'kafka_dlt-original-partition',
      original_offset: 'kafka_dlt-original-offset',
      original_timestamp: 'kafka_dlt-original-timestamp',
      consumer_group: 'kafka_dlt-original-consumer-group',
    },
    death: {
      // Prefer the cause: the exception itself is the listener's wrapper around the error that was thrown.
      exception_class: ['kafka_dlt-exception-cause-fqcn', 'kafka_dlt-exception-fqcn'],
      message: ['kafka_dlt-exception-message'],
      stack_trace: 'kafka_dlt-exception-stacktrace',
    },
  },
  {
    originHeaders: {
      original_topic: '__connect.errors.topic',
      original_partition: '__connect.errors.partition',
      original_offset: '__connect.errors.offset',
    },
    death: {
      exception_class: ['__connect.errors.exception.class.name'],
      message: ['__connect.errors.exception.message'],
      stack_trace: '__connect.errors.exception.stacktrace',
    },
  },
  {
    originHeaders: {
      original_topic: '__dlq.errors.topic',
      original_partition: '__dlq.errors.partition',
      original_offset: '__dlq.errors.offset',
      consumer_group: '__dlq.errors.group',
    },
    death: { message: ['__dlq.errors.message'], retry_count: '__dlq.errors.delivery.count' },
  },
  {
    originHeaders: {
      original_topic: '__streams.errors.topic',
      original_partition: '__streams.errors.partition',
      original_offset: '__streams.errors.offset',
    },
    death: {
      exception_class: ['__streams.errors.exception'],
      message: ['__streams.errors.message'],
      stack_trace: '__streams.errors.stacktrace',
    },
  },
  {
    originHeaders: {
      original_topic: 'x-original-topic',
      original_partition: 'x-original-partition',
      original_offset: 'x-original-offset',
      original_timestamp: 'x-original-timestamp',
      consumer_group: 'x-original-consumer-group',
    },
    death: {
      exception_class: ['x-exception-fqcn'],
      message: ['x-exception-message', 'x-last-error'],
      stack_trace: 'x-exception-stacktrace',
      retry_count: 'x-failure-count',
      last_failure_at: 'x-failed-at',
    },
  },
  {
    originHeaders: {
      original_topic: 'original_topic',
      original_partition: 'original_partition',
      original_offset: 'original_offset',
      consumer_group: 'consumer_group',
    },
    death: { message: ['error'] },
  },
]

const originFields = [
  'original_topic',
  'original_queue',
  'original_partition',
  'original_offset',
  'original_id',
]
const deathFields = ['error_details', 'error_code']

/** Returns fields that the headers have and the envelope does not. */
export function readFailureHeaders(json: Json, headers: readonly Header[], problems: Problems): Json {
  if (headers.length === 0) return {}
  const isMissing = (fields: readonly string[]) =>
    fields.every((name) => json[name] === undefined || json[name] === null)
  const place = isMissing(originFields) ? readOrigin(json, headers, problems) : {}
  const death = isMissing(deathFields) ? readDeath(headers, problems) : {}
  const given = Object.entries({ ...place, ...death })
  return Object.fromEntries(given.filter(([name, value]) => value !== undefined && isMissing([name])))
}

/**
 * A record that died more than once has these headers more than once. The first ones name the real origin.
 * The last ones identify this death, so that a record that was sent back and died again is not taken for a
 * repeat.
 */
function readOrigin(json: Json, headers: readonly Header[], problems: Problems): Json {
  const [first, last] = [indexByName(headers.toReversed()), indexByName(headers)]
  const names = tools.find(
    (tool) => readText(first, tool.originHeaders.original_topic) !== undefined,
  )?.originHeaders
  if (names === undefined) return {}
  const place = readOriginFields(first, names, problems)
  const isRepeated = headers.filter(([name]) => name.toLowerCase() === names.original_topic).length > 1
  if (!isRepeated) return place
  const { original_topic, original_partition, original_offset, ...rest } = readOriginFields(
    last,
    names,
    new Problems(),
  )
  const consumer_group = typeof json.consumer_group === 'string' ? json.consumer_group : rest.consumer_group
  if (original_partition === undefined || original_offset === undefined) return place
  const cluster = typeof json.cluster === 'string' ? json.cluster : ''
  const parts = [cluster, original_topic, original_partition, original_offset, consumer_group]
  return {
    ...place,
    source_id: parts.map((part) => encodeURIComponent(String(part ?? '').toWellFormed())).join('/'),
  }
}

function readOriginFields(values: Values, names: OriginHeaders, problems: Problems): Json {
  return {
    original_topic: readText(values, names.original_topic),
    original_partition: keepIfValid(
      'count',
      readNumber(values, names.original_partition, problems),
      names.original_partition,
      problems,
    ),
    original_offset: readNumber(values, names.original_offset, problems),
    original_timestamp: keepIfValid(
      'time',
      readNumber(values, names.original_timestamp, problems),
      names.original_timestamp,
      problems,
    ),
    consumer_group: readText(values, names.consumer_group),
  }
}

/** Reads the failure from the last headers, which describe the most recent death. */
function readDeath(headers: readonly Header[], problems: Problems): Json {
  const last = indexByName(headers)
  const readOneOf = (names: readonly string[] = []) =>
    names.map((name) => readText(last, name)).find((text) => text !== undefined)
  const death = tools.find(
    (tool) => (readOneOf(tool.death.exception_class) ?? readOneOf(tool.death.message)) !== undefined,
  )?.death
  if (death === undefined) return {}
  return {
    error_details: {
      exception_class: readOneOf(death.exception_class),
      message: readOneOf(death.message),
      stack_trace: readText(last, death.stack_trace),
    },
    retry_count: keepIfValid(
      'count',
      readNumber(last, death.retry_count, problems),
      death.retry_count,
      problems,
    ),
    last_failure_at: keepIfValid(
      'time',
      readText(last, death.last_failure_at),
      death.last_failure_at,
      problems,
    ),
  }
}

type Values = ReadonlyMap<string, Uint8Array | null>

/** Header values by lower-case name; the last one wins. */
function indexByName(headers: readonly Header[]): Values {
  return new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
}

/** Omits values that an envelope could not have: an invalid header must not make the record unreadable. */
function keepIfValid(
  what: 'count' | 'time',
  text: string | undefined,
  name: string | undefined,
  problems: Problems,
): string | undefined {
  if (text === undefined) return undefined
  const fields = new Fields({ text }, '{}', new Problems())
  if ((what === 'count' ? fields.count('text') : fields.readTime('text')) !== undefined) return text
  problems.noteChanged(`header ${name} is not a valid ${what === 'count' ? 'count' : 'time'} and is ignored`)
  return undefined
}

function readText(values: Values, name: string | undefined): string | undefined {
  const value = name === undefined ? undefined : values.get(name)
  if (value === undefined || value === null || value.length === 0) return undefined
  return new TextDecoder().decode(value)
}

/**
 * Reads a number that is written as digits, or as four or eight bytes, as Spring does. Real offsets and
 * partitions never look like printable text when they are written as bytes.
 */
function readNumber(values: Values, name: string | undefined, problems: Problems): string | undefined {
  const text = readText(values, name)?.trim()
  if (text === undefined || /^[0-9]{1,19}$/.test(text)) return text
  const bytes = Buffer.from(values.get(name ?? '') ?? [])
  const isSized = bytes.length === 4 || bytes.length === 8
  if (isSized && (bytes[0] ?? 0) < 0x80 && bytes.some((byte) => byte < 0x20 || byte > 0x7e))
    return String(bytes.length === 4 ? bytes.readInt32BE() : bytes.readBigInt64BE())
  problems.noteChanged(`header ${name} is not a number and is ignored`)
  return undefined
}

const failurePrefixes = ['kafka_dlt-', '__connect.errors.', '__dlq.errors.', '__streams.errors.']
const failureNames: ReadonlySet<string> = new Set([
  ...['x-original-topic', 'x-original-partition', 'x-original-offset', 'x-original-timestamp'],
  ...['x-original-consumer-group', 'x-exception-fqcn', 'x-exception-message', 'x-exception-stacktrace'],
  ...['x-last-error', 'x-failure-count', 'x-failed-at'],
  ...['original_topic', 'original_partition', 'original_offset', 'consumer_group', 'error'],
])

/** Whether a header describes a failure, so that a redriven record must not have it. */
export function isFailureHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return failureNames.has(lower) || failurePrefixes.some((prefix) => lower.startsWith(prefix))
}
