/**
 * What the headers of a record tell of its death, as the tools write them that move records to dead-letter topics:
 * Spring Kafka, Kafka Connect, share groups (KIP-1191), Kafka Streams (KIP-1034), Spring Cloud Stream and the `x-…` names of
 * others, and plain `original_topic` and `error`.
 *
 * Where a record came from is told by one tool alone, and so is why it failed: half of one and half of
 * another would name a record that never was. What the envelope says itself always goes before.
 */
import type { Header } from '../../core/item.ts'
import { Fields, type Json, Problems } from './fields.ts'

/** Fields of an envelope, each with the header that has it. */
type Place = Readonly<{
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
type Tool = Readonly<{ place: Place; death: Death }>

const tools: readonly Tool[] = [
  {
    place: {
      original_topic: 'kafka_dlt-original-topic',
      original_partition: 'kafka_dlt-original-partition',
      original_offset: 'kafka_dlt-original-offset',
      original_timestamp: 'kafka_dlt-original-timestamp',
      consumer_group: 'kafka_dlt-original-consumer-group',
    },
    death: {
      // The exception is the listener's own, which wraps what was thrown in it.
      exception_class: ['kafka_dlt-exception-cause-fqcn', 'kafka_dlt-exception-fqcn'],
      message: ['kafka_dlt-exception-message'],
      stack_trace: 'kafka_dlt-exception-stacktrace',
    },
  },
  {
    place: {
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
    place: {
      original_topic: '__dlq.errors.topic',
      original_partition: '__dlq.errors.partition',
      original_offset: '__dlq.errors.offset',
      consumer_group: '__dlq.errors.group',
    },
    death: { message: ['__dlq.errors.message'], retry_count: '__dlq.errors.delivery.count' },
  },
  {
    place: {
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
    place: {
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
    place: {
      original_topic: 'original_topic',
      original_partition: 'original_partition',
      original_offset: 'original_offset',
      consumer_group: 'consumer_group',
    },
    death: { message: ['error'] },
  },
]

const placeFields = [
  'original_topic',
  'original_queue',
  'original_partition',
  'original_offset',
  'original_id',
]
const deathFields = ['error_details', 'reason']

/** Fields that the envelope does not have and its headers do. */
export function toldByHeaders(json: Json, headers: readonly Header[], problems: Problems): Json {
  if (headers.length === 0) return {}
  const isSilent = (fields: readonly string[]) =>
    fields.every((name) => json[name] === undefined || json[name] === null)
  const place = isSilent(placeFields) ? placesOf(json, headers, problems) : {}
  const death = isSilent(deathFields) ? deathOf(headers, problems) : {}
  const given = Object.entries({ ...place, ...death })
  return Object.fromEntries(given.filter(([name, value]) => value !== undefined && isSilent([name])))
}

/**
 * A record that died more than once has these headers more than once. The first say where it really comes from; the last
 * which death this is: what was sent back with its headers and died again is no repeat.
 */
function placesOf(json: Json, headers: readonly Header[], problems: Problems): Json {
  const [first, last] = [valuesOf(headers.toReversed()), valuesOf(headers)]
  const names = tools.find((tool) => textIn(first, tool.place.original_topic) !== undefined)?.place
  if (names === undefined) return {}
  const place = placeOf(first, names, problems)
  const isRepeated = headers.filter(([name]) => name.toLowerCase() === names.original_topic).length > 1
  if (!isRepeated) return place
  const { original_topic, original_partition, original_offset, ...rest } = placeOf(
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

function placeOf(values: Values, names: Place, problems: Problems): Json {
  return {
    original_topic: textIn(values, names.original_topic),
    original_partition: readable(
      'count',
      numberIn(values, names.original_partition, problems),
      names.original_partition,
      problems,
    ),
    original_offset: numberIn(values, names.original_offset, problems),
    original_timestamp: readable(
      'time',
      numberIn(values, names.original_timestamp, problems),
      names.original_timestamp,
      problems,
    ),
    consumer_group: textIn(values, names.consumer_group),
  }
}

/** And the last say why it is here. */
function deathOf(headers: readonly Header[], problems: Problems): Json {
  const last = valuesOf(headers)
  const oneOf = (names: readonly string[] = []) =>
    names.map((name) => textIn(last, name)).find((text) => text !== undefined)
  const death = tools.find(
    (tool) => (oneOf(tool.death.exception_class) ?? oneOf(tool.death.message)) !== undefined,
  )?.death
  if (death === undefined) return {}
  return {
    error_details: {
      exception_class: oneOf(death.exception_class),
      message: oneOf(death.message),
      stack_trace: textIn(last, death.stack_trace),
    },
    retry_count: readable('count', numberIn(last, death.retry_count, problems), death.retry_count, problems),
    last_failure_at: readable('time', textIn(last, death.last_failure_at), death.last_failure_at, problems),
  }
}

type Values = ReadonlyMap<string, Uint8Array | null>

/** Of a name that is repeated the last. */
function valuesOf(headers: readonly Header[]): Values {
  return new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
}

/** What an envelope could not say either is left out: a header that is odd must not make the record unreadable. */
function readable(
  what: 'count' | 'time',
  text: string | undefined,
  name: string | undefined,
  problems: Problems,
): string | undefined {
  if (text === undefined) return undefined
  const fields = new Fields({ text }, '{}', new Problems())
  if ((what === 'count' ? fields.count('text') : fields.time('text')) !== undefined) return text
  problems.mended(
    `header ${name} is no ${what === 'count' ? 'number that can be counted' : 'time'}, and tells nothing`,
  )
  return undefined
}

function textIn(values: Values, name: string | undefined): string | undefined {
  const value = name === undefined ? undefined : values.get(name)
  if (value === undefined || value === null || value.length === 0) return undefined
  return new TextDecoder().decode(value)
}

/** As digits, or as the four or eight bytes that Spring writes. Of numbers that records have, none is all letters and digits as bytes. */
function numberIn(values: Values, name: string | undefined, problems: Problems): string | undefined {
  const text = textIn(values, name)?.trim()
  if (text === undefined || /^[0-9]{1,19}$/.test(text)) return text
  const bytes = Buffer.from(values.get(name ?? '') ?? [])
  const isSized = bytes.length === 4 || bytes.length === 8
  if (isSized && (bytes[0] ?? 0) < 0x80 && bytes.some((byte) => byte < 0x20 || byte > 0x7e))
    return String(bytes.length === 4 ? bytes.readInt32BE() : bytes.readBigInt64BE())
  problems.mended(`header ${name} is not a number, and tells nothing`)
  return undefined
}
