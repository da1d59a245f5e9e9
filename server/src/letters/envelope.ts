/**
 * Reads what a worker says of a message that it could not process into a letter. Whatever is sent becomes one:
 * what cannot be read is kept whole as the payload, and the failure says what was wrong with it. So a
 * broken envelope is seen by a person instead of being refused to a worker that has nobody to tell.
 *
 * Everything is bounded, and every text is one that both stores can keep.
 */
import { fromDate, type Instant } from '../core/instant.ts'
import { type Failure, type Header, historyMax, type Origin } from '../core/item.ts'
import type { CapturedLetter } from './letters.ts'

export type ReadEnvelope = Readonly<{
  letter: CapturedLetter
  /** What could not be read, a sentence each. Empty: all was well. */
  problems: readonly string[]
}>

export type EnvelopeDefaults = Readonly<{
  /** Where it came from, when the envelope does not say. */
  origin: string
  now: Instant
}>

export const envelopeBounds = {
  nameMax: 512,
  classMax: 500,
  messageMax: 16_000,
  /** Of the envelope's stack trace: what a worker sends beyond the first 500 characters is kept too. */
  stackMax: 32_000,
  headersMax: 1_000,
  sourceIdMax: 1_000,
} as const

const undecodable = 'undecodable'
export const envelopeHeaderName = 'redrive-envelope'

/** `json`: the envelope as parsed. `raw`: as it came, kept when it is no envelope. */
export function readEnvelope(
  json: unknown,
  defaults: EnvelopeDefaults,
  raw: Uint8Array = encodeJson(json),
): ReadEnvelope {
  if (!isObject(json)) return undecodedLetter(raw, `an envelope is an object, not ${nameOf(json)}`, defaults)
  const problems: string[] = []
  const reader = new Fields(json, problems)

  const payload = readBytes(json.original_value, json.original_value_encoding, 'original_value', problems)
  const isPayloadRead = problems.length === 0
  const key = readBytes(json.original_key, json.original_key_encoding, 'original_key', problems)
  const headers = readHeaders(json.headers, problems)
  const lastFailedAt = reader.time('last_failure_at') ?? defaults.now
  const firstFailedAt = reader.time('first_failure_at') ?? lastFailedAt
  const origin = readOrigin(reader, defaults, firstFailedAt)
  const failure = readFailure(reader, firstFailedAt, lastFailedAt)
  const history = readHistory(json.history, failure, defaults, problems)
  const sourceId = readSourceId(reader, origin)

  const diedAt = reader.time('dead_lettered_at')
  const isWhole = problems.length === 0
  const letter: CapturedLetter = {
    sourceId,
    origin,
    // Without its value the envelope itself is the only truth there is.
    payload: isPayloadRead ? (payload ?? new Uint8Array()) : raw,
    key,
    headers: isWhole || !isPayloadRead ? headers : [...headers, envelopeHeader(json)],
    failure: isWhole ? failure : withProblems(failure, problems),
    history,
    ...(diedAt !== undefined && { diedAt }),
  }
  return { letter, problems }
}

/** Bytes that are no envelope at all. */
export function undecodedLetter(raw: Uint8Array, problem: string, defaults: EnvelopeDefaults): ReadEnvelope {
  const { now } = defaults
  const failure: Failure = {
    reason: undecodable,
    errorClass: 'EnvelopeUnreadable',
    message: `the envelope could not be read: ${problem}`.slice(0, envelopeBounds.messageMax),
    stack: '',
    attempts: 0,
    firstFailedAt: now,
    lastFailedAt: now,
    worker: '',
  }
  const letter: CapturedLetter = {
    sourceId: null,
    origin: {
      kind: 'http',
      name: defaults.origin,
      partition: null,
      id: '',
      group: null,
      cluster: null,
      createdAt: now,
    },
    payload: raw,
    key: null,
    headers: [],
    failure,
    history: [],
  }
  return { letter, problems: [problem] }
}

type Json = Readonly<Record<string, unknown>>

/** Reads single fields; what is there and cannot be read is a problem, what is absent is not. */
class Fields {
  readonly #json: Json
  readonly #problems: string[]

  constructor(json: Json, problems: string[]) {
    this.#json = json
    this.#problems = problems
  }

  text(name: string, lengthMax: number): string | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    if (typeof value === 'string') return cleanText(value, lengthMax)
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
    this.#problems.push(`${name} is ${nameOf(value)}, not a text`)
    return undefined
  }

  count(name: string): number | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= int4Max)
      return number
    this.#problems.push(`${name} is not a whole number from 0 to ${int4Max}`)
    return undefined
  }

  time(name: string): Instant | undefined {
    const value = this.#json[name]
    if (value === undefined || value === null) return undefined
    const instant = readTime(value)
    if (instant === undefined)
      this.#problems.push(`${name} is not a time in RFC 3339 or milliseconds since 1970`)
    return instant
  }

  object(name: string): Fields {
    const value = this.#json[name]
    if (isObject(value)) return new Fields(value, this.#problems)
    if (typeof value === 'string') return new Fields({ message: value }, this.#problems)
    if (value !== undefined && value !== null)
      this.#problems.push(`${name} is ${nameOf(value)}, not an object`)
    return new Fields({}, this.#problems)
  }
}

function readOrigin(reader: Fields, defaults: EnvelopeDefaults, firstFailedAt: Instant): Origin {
  const { nameMax } = envelopeBounds
  const topic = reader.text('original_topic', nameMax)
  const queue = reader.text('original_queue', nameMax)
  const partition = reader.count('original_partition') ?? null
  const offset = reader.text('original_offset', nameMax)
  return {
    kind: queue !== undefined ? 'queue' : topic !== undefined && offset !== undefined ? 'kafka' : 'http',
    name: queue ?? topic ?? defaults.origin,
    partition,
    id: offset ?? reader.text('original_id', nameMax) ?? '',
    group: reader.text('consumer_group', nameMax) ?? null,
    cluster: reader.text('cluster', nameMax) ?? null,
    createdAt: reader.time('original_timestamp') ?? firstFailedAt,
  }
}

function readFailure(reader: Fields, firstFailedAt: Instant, lastFailedAt: Instant): Failure {
  const { classMax, messageMax, stackMax, nameMax } = envelopeBounds
  const error = reader.object('error_details')
  const errorClass = error.text('exception_class', classMax) ?? ''
  return {
    reason: reader.text('reason', 100) || error.text('code', 100) || reasonOf(errorClass),
    errorClass,
    message: error.text('message', messageMax) ?? '',
    stack: error.text('stack_trace', stackMax) ?? '',
    attempts: reader.count('retry_count') ?? 0,
    firstFailedAt: Math.min(firstFailedAt, lastFailedAt),
    lastFailedAt,
    worker: reader.text('worker_instance', nameMax) ?? '',
  }
}

/** The last part of a class name, as a code: `java.net.SocketTimeoutException` is `SocketTimeoutException`. */
function reasonOf(errorClass: string): string {
  const last = errorClass.split(/[.$/\\:]/).findLast((part) => part !== '')
  return (last ?? 'unknown').slice(0, 100)
}

function withProblems(failure: Failure, problems: readonly string[]): Failure {
  const told = `the envelope could not be read in full: ${problems.slice(0, 5).join('; ')}`
  const message = failure.message === '' ? told : `${failure.message} (${told})`
  return { ...failure, reason: undecodable, message: message.slice(0, envelopeBounds.messageMax) }
}

function readHistory(
  value: unknown,
  failure: Failure,
  defaults: EnvelopeDefaults,
  problems: string[],
): readonly Failure[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    problems.push(`history is ${nameOf(value)}, not a list`)
    return []
  }
  return value.slice(0, historyMax).flatMap((entry: unknown) => {
    if (!isObject(entry)) {
      problems.push(`history has ${nameOf(entry)}, not an object`)
      return []
    }
    const reader = new Fields(entry, problems)
    const at = reader.time('failed_at') ?? reader.time('last_failure_at') ?? defaults.now
    const own =
      entry.error_details === undefined ? new Fields({ ...entry, error_details: entry }, problems) : reader
    return [
      { ...readFailure(own, reader.time('first_failure_at') ?? at, at), worker: workerOf(reader, failure) },
    ]
  })
}

function workerOf(reader: Fields, failure: Failure): string {
  return reader.text('worker_instance', envelopeBounds.nameMax) ?? failure.worker
}

/** What names a Kafka record: cluster, topic, partition, offset and the group that failed on it. */
function readSourceId(reader: Fields, origin: Origin): string | null {
  const given = reader.text('source_id', envelopeBounds.sourceIdMax)
  if (given !== undefined && given !== '') return given
  if (origin.kind !== 'kafka' || origin.partition === null) return null
  return kafkaSourceId(origin)
}

export function kafkaSourceId(
  origin: Pick<Origin, 'cluster' | 'name' | 'partition' | 'id' | 'group'>,
): string {
  const parts = [
    origin.cluster ?? '',
    origin.name,
    String(origin.partition ?? ''),
    origin.id,
    origin.group ?? '',
  ]
  return parts.map(encodeURIComponent).join('/').slice(0, envelopeBounds.sourceIdMax)
}

/** The value can be read, but not all that is said of it: what was said is kept beside it. */
function envelopeHeader({ original_value: _, ...rest }: Json): Header {
  return [envelopeHeaderName, encodeJson(rest)]
}

/**
 * A text is its UTF-8, or what its encoding says; `{"base64": "…"}` and `{"text": "…"}` say it themselves; any
 * other JSON is its JSON text.
 */
function readBytes(value: unknown, encoding: unknown, name: string, problems: string[]): Uint8Array | null {
  if (value === undefined || value === null) return null
  if (isObject(value) && typeof value.base64 === 'string' && Object.keys(value).length === 1)
    return readBase64(value.base64, name, problems)
  if (isObject(value) && typeof value.text === 'string' && Object.keys(value).length === 1)
    return encodeText(value.text)
  if (encoding === 'base64') {
    if (typeof value === 'string') return readBase64(value, name, problems)
    problems.push(`${name} is ${nameOf(value)}, not base64`)
    return null
  }
  if (encoding !== undefined && encoding !== null && encoding !== 'text' && encoding !== 'json') {
    problems.push(`${name}_encoding is none of text, json, base64`)
    return null
  }
  return typeof value === 'string' && encoding !== 'json' ? encodeText(value) : encodeJson(value)
}

function readBase64(text: string, name: string, problems: string[]): Uint8Array | null {
  const plain = text.replaceAll(/\s/g, '')
  const isBase64 = /^[A-Za-z0-9+/_-]*={0,2}$/.test(plain) && plain.replaceAll('=', '').length % 4 !== 1
  if (isBase64) return new Uint8Array(Buffer.from(plain, 'base64'))
  problems.push(`${name} is not base64`)
  return null
}

/** An object of name to value, or a list of `{name|key, value}` or `[name, value]`: order and repeats are kept. */
function readHeaders(value: unknown, problems: string[]): readonly Header[] {
  if (value === undefined || value === null) return []
  const pairs = Array.isArray(value)
    ? value.map(headerPair)
    : isObject(value)
      ? Object.entries(value)
      : undefined
  if (pairs === undefined) {
    problems.push(`headers are ${nameOf(value)}, not an object or a list`)
    return []
  }
  if (pairs.length > envelopeBounds.headersMax) {
    problems.push(`there are ${pairs.length} headers, more than ${envelopeBounds.headersMax}`)
    return []
  }
  return pairs.flatMap((pair): readonly Header[] => {
    if (pair === undefined) {
      problems.push('a header has no name')
      return []
    }
    const [name, held] = pair
    if (Array.isArray(held)) return held.map((one: unknown) => headerOf(name, one, problems))
    return [headerOf(name, held, problems)]
  })
}

function headerPair(entry: unknown): readonly [string, unknown] | undefined {
  if (Array.isArray(entry)) return typeof entry[0] === 'string' ? [entry[0], entry[1]] : undefined
  if (!isObject(entry)) return undefined
  const name = entry.name ?? entry.key
  return typeof name === 'string' ? [name, entry.value] : undefined
}

function headerOf(name: string, value: unknown, problems: string[]): Header {
  const cleanName = cleanText(name, envelopeBounds.nameMax)
  return [cleanName, readBytes(value, undefined, `header ${cleanName.slice(0, 50)}`, problems)]
}

const int4Max = 2 ** 31 - 1
const yearMs = 366 * 24 * 3_600_000
const timeMsMax = 285 * yearMs

function readTime(value: unknown): Instant | undefined {
  if (typeof value === 'number') return isTimeMs(value) ? Math.round(value * 1_000) : undefined
  if (typeof value !== 'string' || value.length > 64) return undefined
  const text = value.trim()
  if (/^-?[0-9]{9,15}$/.test(text)) return isTimeMs(Number(text)) ? Number(text) * 1_000 : undefined
  const parts =
    /^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9:]{5,8})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:?[0-9]{2})?$/i.exec(
      text,
    )
  if (parts === null) return undefined
  const [, day, time, fraction = '', zone = 'Z'] = parts
  const date = new Date(`${day}T${time}${zone}`)
  if (!isTimeMs(date.getTime())) return undefined
  return fromDate(date) + Number(fraction.padEnd(6, '0').slice(0, 6))
}

function isTimeMs(ms: number): boolean {
  return Number.isFinite(ms) && Math.abs(ms) < timeMsMax
}

/** As both stores can keep it: no NUL, no half of a character pair. */
export function cleanText(text: string, lengthMax: number): string {
  return text.slice(0, lengthMax).replaceAll('\u0000', '\ufffd').toWellFormed()
}

function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function encodeJson(value: unknown): Uint8Array {
  return encodeText(JSON.stringify(value) ?? 'null')
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return (
    { object: 'an object', string: 'a text', number: 'a number', boolean: 'a boolean' }[
      typeof value as string
    ] ?? 'nothing'
  )
}
