/**
 * Reads what a worker says of a message that it could not process into a letter. Whatever is sent becomes one:
 * what cannot be read is kept whole as the payload, and the failure says what was wrong with it. So a
 * broken envelope is seen by a person instead of being refused to a worker that has nobody to tell.
 *
 * Everything is bounded, and every text is one that both stores can keep. What had to be changed for that is
 * said, and two envelopes that name different things never become one letter.
 */

import { cutText, errorClassMax, failureReasonMax } from '../../core/failure-bounds.ts'
import { type Instant, usPerSecond } from '../../core/instant.ts'
import { type Failure, type Header, historyMax, type Origin } from '../../core/item.ts'
import { elementTexts, fieldTexts } from '../../core/json-text.ts'
import type { CapturedLetter } from '../letters.ts'
import { encodeText, readBytes, readHeaders } from './bytes.ts'
import { distinctText, Fields, isObject, kindOf, Problems } from './fields.ts'
import { toldByHeaders } from './header-conventions.ts'
import { hasErrorDetails, tellUnknown } from './unknown-fields.ts'

export type ReadEnvelope = Readonly<{
  letter: CapturedLetter
  /** What could not be read, or not be kept as it was sent, a sentence each. Empty: all was well. */
  problems: readonly string[]
}>

export type EnvelopeDefaults = Readonly<{
  /** Where it came from, when the envelope does not say. */
  origin: string
  now: Instant
}>

export const envelopeBounds = {
  nameMax: 512,
  classMax: errorClassMax,
  reasonMax: failureReasonMax,
  messageMax: 16_000,
  /** Of the envelope's stack trace: what a worker sends beyond the first 500 characters is kept too. */
  stackMax: 32_000,
  sourceIdMax: 1_000,
} as const

const undecodable = 'undecodable'
export const envelopeHeaderName = 'redrive-envelope'

/** Clocks differ, but not by more. */
const aheadUsMax = 24 * 3_600 * usPerSecond

/** `json`: the envelope as parsed. `text`: what it was parsed from, kept when it is no envelope. */
export function readEnvelope(json: unknown, text: string, defaults: EnvelopeDefaults): ReadEnvelope {
  if (!isObject(json))
    return undecodedLetter(encodeText(text), `an envelope is an object, not ${kindOf(json)}`, defaults)
  const problems = new Problems()
  const said = new Fields(json, text, problems)
  const bytesOf = (name: 'original_value' | 'original_key', isMended: boolean) =>
    readBytes(
      { value: json[name], text: said.written(name) },
      { name, encoding: json[`${name}_encoding`], problems, isMended },
    )

  const payload = bytesOf('original_value', false)
  const isPayloadRead = problems.all.length === 0
  const key = bytesOf('original_key', true)
  const headers = readHeaders({ value: json.headers, text: said.written('headers') }, problems)
  const reader = new Fields({ ...json, ...toldByHeaders(json, headers, problems) }, text, problems)
  const lastFailedAt = reader.time('last_failure_at') ?? defaults.now
  const firstFailedAt = reader.time('first_failure_at') ?? lastFailedAt
  const origin = readOrigin(reader, defaults, firstFailedAt)
  const failure = readFailure(reader, firstFailedAt, lastFailedAt)
  const history = readHistory(json.history, reader, failure, defaults, problems)
  const sourceId = readSourceId(reader, origin, problems)
  const diedAt = readDiedAt(reader, defaults.now, problems)
  tellUnknown(json, problems)
  const letter: CapturedLetter = {
    sourceId,
    origin,
    // Without its value the envelope itself is the only truth there is.
    payload: isPayloadRead ? (payload ?? new Uint8Array()) : encodeText(text),
    key,
    headers: problems.isChanged && isPayloadRead ? [...headers, envelopeHeader(text)] : headers,
    failure: problems.isUnread ? withProblems(failure, problems.all) : failure,
    history,
    ...(diedAt !== undefined && { diedAt }),
  }
  return { letter, problems: problems.all }
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

function readOrigin(reader: Fields, defaults: EnvelopeDefaults, firstFailedAt: Instant): Origin {
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
    createdAt: reader.time('original_timestamp') ?? firstFailedAt,
  }
}

function readFailure(reader: Fields, firstFailedAt: Instant, lastFailedAt: Instant): Failure {
  const { classMax, reasonMax, messageMax, stackMax, nameMax } = envelopeBounds
  const error = reader.object('error_details')
  const errorClass = error.text('exception_class', classMax) ?? ''
  return {
    reason: reader.text('reason', reasonMax) || error.text('code', reasonMax) || reasonOf(errorClass),
    errorClass,
    message: error.longText('message', messageMax) ?? '',
    stack: error.longText('stack_trace', stackMax) ?? '',
    attempts: reader.count('retry_count') ?? 0,
    firstFailedAt: Math.min(firstFailedAt, lastFailedAt),
    lastFailedAt,
    worker: reader.text('worker_instance', nameMax) ?? '',
  }
}

/** The last part of a class name, as a code: `java.net.SocketTimeoutException` is `SocketTimeoutException`. */
function reasonOf(errorClass: string): string {
  const last = errorClass.split(/[.$/\\:]/).findLast((part) => part !== '')
  return cutText(last ?? 'unknown', envelopeBounds.reasonMax)
}

function withProblems(failure: Failure, problems: readonly string[]): Failure {
  const told = `the envelope could not be read in full: ${problems.slice(0, 5).join('; ')}`
  const message = failure.message === '' ? told : `${failure.message} (${told})`
  return { ...failure, reason: undecodable, message: message.slice(0, envelopeBounds.messageMax) }
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
    problems.unread(`history is ${kindOf(value)}, not a list`)
    return []
  }
  if (value.length > historyMax)
    problems.mended(`history has ${value.length} entries: the newest ${historyMax} are kept`)
  const texts = elementTexts(whole.written('history'))
  return newestFirst(value)
    .slice(0, historyMax)
    .flatMap((place) => {
      const entry: unknown = value[place]
      if (!isObject(entry)) {
        problems.unread(`history has ${kindOf(entry)}, not an object`)
        return []
      }
      const text = texts[place] ?? '{}'
      const reader = new Fields(entry, text, problems)
      const at = failedAt(reader) ?? defaults.now
      const own = hasErrorDetails(entry)
        ? reader
        : new Fields({ ...entry, error_details: entry }, withField(text, 'error_details', text), problems)
      return [
        { ...readFailure(own, reader.time('first_failure_at') ?? at, at), worker: workerOf(reader, failure) },
      ]
    })
}

function failedAt(entry: Fields): Instant | undefined {
  return entry.time('failed_at') ?? entry.time('last_failure_at')
}

/**
 * The places of the entries, that of the newest first: senders write them either way. One without a time stays with
 * the one before it, so that a history without any stays as it was sent.
 */
function newestFirst(entries: readonly unknown[]): readonly number[] {
  // What is wrong with a time is said where the entry is read: most of a long history never is.
  const times = entries.map((entry) =>
    isObject(entry) ? failedAt(new Fields(entry, '{}', new Problems())) : undefined,
  )
  let before = times.find((time) => time !== undefined) ?? 0
  const told = times.map((time) => {
    before = time ?? before
    return before
  })
  return [...told.keys()].sort((a, b) => (told[b] as Instant) - (told[a] as Instant))
}

function workerOf(reader: Fields, failure: Failure): string {
  return reader.text('worker_instance', envelopeBounds.nameMax) ?? failure.worker
}

/** What names a Kafka record: cluster, topic, partition, offset and the group that failed on it. */
function readSourceId(reader: Fields, origin: Origin, problems: Problems): string | null {
  const { sourceIdMax } = envelopeBounds
  const given = reader.name('source_id', sourceIdMax)
  if (given !== undefined && given !== '') return given
  if (origin.kind !== 'kafka' || origin.partition === null) return null
  const { cluster, name, partition, id, group } = origin
  const parts = [cluster ?? '', name, String(partition), id, group ?? '']
  const made = parts.map(encodeURIComponent).join('/')
  return distinctText(made, sourceIdMax, 'the source id of cluster, topic, offset and group', problems)
}

function readDiedAt(reader: Fields, now: Instant, problems: Problems): Instant | undefined {
  const diedAt = reader.time('dead_lettered_at')
  if (diedAt === undefined || diedAt <= now + aheadUsMax) return diedAt
  problems.mended('dead_lettered_at is more than a day ahead: taken as now')
  return now
}

/** The value can be read, but not all that is said of it: what was said is kept beside it, as it was written. */
function envelopeHeader(text: string): Header {
  const rest = fieldTexts(text).filter(([name]) => name !== 'original_value')
  return [envelopeHeaderName, encodeText(`{${rest.map(writeField).join(',')}}`)]
}

function withField(text: string, name: string, value: string): string {
  return `{${[...fieldTexts(text), [name, value] as const].map(writeField).join(',')}}`
}

function writeField([name, value]: readonly [name: string, text: string]): string {
  return `${JSON.stringify(name)}:${value}`
}
