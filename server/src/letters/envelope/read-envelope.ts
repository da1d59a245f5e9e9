/**
 * Reads the envelope that a worker sends for a message that it could not process, and turns it into a letter.
 * Any input becomes a letter: if it cannot be read, the whole input is kept as the payload and the failure
 * describes the problem. So a person sees a broken envelope; refusing it would only reach a worker that
 * cannot fix it.
 *
 * Every value is bounded, and every text can be stored by both stores. Changes that this requires are
 * reported. Two envelopes that name different messages never become the same letter.
 */

import { errorClassMax, failureReasonMax, fingerprintMax } from '../../core/dead-letters/failure-bounds.ts'
import { type Failure, type Header, historyMax, type Origin } from '../../core/items/item.ts'
import { splitElements, splitFields } from '../../core/text/json-text.ts'
import { cutText } from '../../core/text/storable-text.ts'
import { type Instant, usPerSecond } from '../../core/time/instant.ts'
import type { CapturedLetter } from '../letters.ts'
import { encodeText, readBytes, readHeaders } from './bytes.ts'
import { describeKind, Fields, isObject, keepDistinct, Problems } from './fields.ts'
import { readFailureHeaders } from './header-conventions.ts'
import { hasErrorDetails, reportUnknownFields } from './unknown-fields.ts'

export type ReadEnvelope = Readonly<{
  letter: CapturedLetter
  /** Problems, one sentence each: parts that could not be read, or could not be kept unchanged. */
  problems: readonly string[]
}>

export type EnvelopeDefaults = Readonly<{
  /** The origin to use if the envelope names none. */
  origin: string
  now: Instant
}>

export const envelopeBounds = {
  nameMax: 512,
  classMax: errorClassMax,
  reasonMax: failureReasonMax,
  messageMax: 16_000,
  /** Longer than the 500 characters that the envelope format requires: longer stack traces are kept, too. */
  stackMax: 32_000,
  sourceIdMax: 1_000,
} as const

const undecodable = 'undecodable'
export const envelopeHeaderName = 'redrive-envelope'

/** Maximum difference between clocks that is accepted. */
const aheadUsMax = 24 * 3_600 * usPerSecond

/** `json`: the parsed envelope. `text`: the text that it was parsed from, kept if it is not an envelope. */
export function readEnvelope(json: unknown, text: string, defaults: EnvelopeDefaults): ReadEnvelope {
  if (!isObject(json))
    return createUndecodedLetter(
      encodeText(text),
      `the envelope is ${describeKind(json)}, not an object`,
      defaults,
    )
  const problems = new Problems()
  const said = new Fields(json, text, problems)
  const readOriginal = (name: 'original_value' | 'original_key', isReplaced: boolean) =>
    readBytes(
      { value: json[name], text: said.readWritten(name) },
      { name, encoding: json[`${name}_encoding`], problems, isReplaced },
    )

  const payload = readOriginal('original_value', false)
  const isPayloadRead = problems.all.length === 0
  const key = readOriginal('original_key', true)
  const headers = readHeaders({ value: json.headers, text: said.readWritten('headers') }, problems)
  const reader = new Fields({ ...json, ...readFailureHeaders(json, headers, problems) }, text, problems)
  const lastFailedAt = reader.readTime('last_failure_at') ?? defaults.now
  const firstFailedAt = reader.readTime('first_failure_at') ?? lastFailedAt
  const origin = readOrigin(reader, defaults, firstFailedAt)
  const failure = readFailure(reader, firstFailedAt, lastFailedAt)
  const history = readHistory(json.history, reader, failure, defaults, problems)
  const sourceId = readSourceId(reader, origin, problems)
  const deadLetteredAt = readDeadLetteredAt(reader, defaults.now, problems)
  reportUnknownFields(json, problems)
  const letter: CapturedLetter = {
    sourceId,
    origin,
    // The value cannot be read, so keep the whole envelope as the payload.
    payload: isPayloadRead ? (payload ?? new Uint8Array()) : encodeText(text),
    key,
    headers: problems.isChanged && isPayloadRead ? [...headers, createEnvelopeHeader(text)] : headers,
    failure: problems.isUnread ? withProblems(failure, problems.all) : failure,
    history,
    ...(deadLetteredAt !== undefined && { deadLetteredAt }),
  }
  return { letter, problems: problems.all }
}

/** Makes a letter of bytes that are not an envelope. */
export function createUndecodedLetter(
  raw: Uint8Array,
  problem: string,
  defaults: EnvelopeDefaults,
): ReadEnvelope {
  const { now } = defaults
  const failure: Failure = {
    errorCode: undecodable,
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

export function readOrigin(reader: Fields, defaults: EnvelopeDefaults, firstFailedAt: Instant): Origin {
  const { nameMax } = envelopeBounds
  const topic = reader.name('original_topic', nameMax)
  const queue = reader.name('original_queue', nameMax)
  const partition = reader.count('original_partition') ?? null
  const offset = reader.name('original_offset', nameMax)
  return {
    kind: queue !== undefined ? 'queue' : topic !== undefined && offset !== undefined ? 'kafka' : 'http',
    name: queue ?? topic ?? defaults.origin,
    partition,
    id: offset ?? reader.name('original_id', nameMax) ?? '',
    group: reader.name('consumer_group', nameMax) ?? null,
    cluster: reader.name('cluster', nameMax) ?? null,
    createdAt: reader.readTime('original_timestamp') ?? firstFailedAt,
  }
}

export function readFailure(reader: Fields, firstFailedAt: Instant, lastFailedAt: Instant): Failure {
  const { classMax, reasonMax, messageMax, stackMax, nameMax } = envelopeBounds
  const error = reader.readObject('error_details')
  const errorClass = error.readText('exception_class', classMax) ?? ''
  const fingerprint = error.readText('fingerprint', fingerprintMax) || undefined
  return {
    errorCode:
      reader.readText('error_code', reasonMax) ||
      error.readText('code', reasonMax) ||
      deriveErrorCode(errorClass),
    errorClass,
    message: error.readLongText('message', messageMax) ?? '',
    stack: error.readLongText('stack_trace', stackMax) ?? '',
    attempts: reader.count('retry_count') ?? 0,
    firstFailedAt: Math.min(firstFailedAt, lastFailedAt),
    lastFailedAt,
    worker: reader.readText('worker_instance', nameMax) ?? '',
    ...(fingerprint !== undefined && { fingerprint }),
  }
}

/** The last part of a class name: `java.net.SocketTimeoutException` becomes `SocketTimeoutException`. */
function deriveErrorCode(errorClass: string): string {
  const last = errorClass.split(/[.$/\\:]/).findLast((part) => part !== '')
  return cutText(last ?? 'unknown', envelopeBounds.reasonMax)
}

export function withProblems(failure: Failure, problems: readonly string[]): Failure {
  const summary = `the envelope could not be read in full: ${problems.slice(0, 5).join('; ')}`
  const message = failure.message === '' ? summary : `${failure.message} (${summary})`
  return { ...failure, errorCode: undecodable, message: message.slice(0, envelopeBounds.messageMax) }
}

function readHistory(
  value: unknown,
  whole: Fields,
  failure: Failure,
  defaults: EnvelopeDefaults,
  problems: Problems,
): readonly Failure[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    problems.noteUnread(`history is ${describeKind(value)}, not a list`)
    return []
  }
  if (value.length > historyMax)
    problems.noteChanged(`history has ${value.length} entries: the newest ${historyMax} are kept`)
  const texts = splitElements(whole.readWritten('history'))
  return sortNewestFirst(value)
    .slice(0, historyMax)
    .flatMap((place) => {
      const entry: unknown = value[place]
      if (!isObject(entry)) {
        problems.noteUnread(`history has ${describeKind(entry)}, not an object`)
        return []
      }
      const text = texts[place] ?? '{}'
      const reader = new Fields(entry, text, problems)
      const at = readFailedAt(reader) ?? defaults.now
      const own = hasErrorDetails(entry)
        ? reader
        : new Fields({ ...entry, error_details: entry }, addField(text, 'error_details', text), problems)
      return [
        {
          ...readFailure(own, reader.readTime('first_failure_at') ?? at, at),
          worker: readWorker(reader, failure),
        },
      ]
    })
}

function readFailedAt(entry: Fields): Instant | undefined {
  return entry.readTime('failed_at') ?? entry.readTime('last_failure_at')
}

/**
 * Returns the indexes of the entries, newest first: senders use both orders. An entry without a time stays
 * next to the previous entry, so a history without times keeps its order.
 */
function sortNewestFirst(entries: readonly unknown[]): readonly number[] {
  // Ignore problems with times here: they are reported when the entry is read, and most entries are not.
  const times = entries.map((entry) =>
    isObject(entry) ? readFailedAt(new Fields(entry, '{}', new Problems())) : undefined,
  )
  let before = times.find((time) => time !== undefined) ?? 0
  const completed = times.map((time) => {
    before = time ?? before
    return before
  })
  return [...completed.keys()].sort((a, b) => (completed[b] as Instant) - (completed[a] as Instant))
}

function readWorker(reader: Fields, failure: Failure): string {
  return reader.readText('worker_instance', envelopeBounds.nameMax) ?? failure.worker
}

/** The identity of a Kafka record: cluster, topic, partition, offset and the consumer group that failed. */
export function readSourceId(reader: Fields, origin: Origin, problems: Problems): string | null {
  const { sourceIdMax } = envelopeBounds
  const given = reader.name('source_id', sourceIdMax)
  if (given !== undefined && given !== '') return given
  if (origin.kind !== 'kafka' || origin.partition === null) return null
  const { cluster, name, partition, id, group } = origin
  const parts = [cluster ?? '', name, String(partition), id, group ?? '']
  const made = parts.map(encodeURIComponent).join('/')
  return keepDistinct(made, sourceIdMax, 'the source id of cluster, topic, offset and group', problems)
}

function readDeadLetteredAt(reader: Fields, now: Instant, problems: Problems): Instant | undefined {
  const deadLetteredAt = reader.readTime('dead_lettered_at')
  if (deadLetteredAt === undefined || deadLetteredAt <= now + aheadUsMax) return deadLetteredAt
  problems.noteChanged('dead_lettered_at is more than a day in the future: replaced by the current time')
  return now
}

/** Keeps the original envelope, without its value, as a header if some of its fields could not be read. */
function createEnvelopeHeader(text: string): Header {
  const rest = splitFields(text).filter(([name]) => name !== 'original_value')
  return [envelopeHeaderName, encodeText(`{${rest.map(writeField).join(',')}}`)]
}

function addField(text: string, name: string, value: string): string {
  return `{${[...splitFields(text), [name, value] as const].map(writeField).join(',')}}`
}

function writeField([name, value]: readonly [name: string, text: string]): string {
  return `${JSON.stringify(name)}:${value}`
}
