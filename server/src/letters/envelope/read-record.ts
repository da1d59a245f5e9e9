/**
 * Turns a record of a dead-letter topic into a letter. The value is either an envelope, or the original value
 * with a description of the failure in the headers. A record without any description becomes a letter too.
 */

import type { Header, Origin } from '../../core/items/item.ts'
import { sourceOfDeadTopic } from '../../core/kafka/topic-patterns.ts'
import { isNestedTooDeep } from '../../core/text/nesting.ts'
import { cutText } from '../../core/text/storable-text.ts'
import { type Instant, usPerMs } from '../../core/time/instant.ts'
import type { CapturedLetter } from '../letters.ts'
import { cleanText, Fields, isObject, type Json, keepDistinct, Problems } from './fields.ts'
import { readFailureHeaders } from './header-conventions.ts'
import {
  createUndecodedLetter,
  envelopeBounds,
  type ReadEnvelope,
  readEnvelope,
  readFailure,
  readOrigin,
  readSourceId,
  withProblems,
} from './read-envelope.ts'

export type { CapturedLetter } from '../letters.ts'

export type DeadRecord = Readonly<{
  cluster: string
  /** The dead-letter topic. */
  topic: string
  partition: number
  offset: number
  /** When the record was written to the dead-letter topic, in milliseconds; negative: unknown. */
  timestampMs: number
  key: Uint8Array | null
  /** Null: a tombstone. */
  value: Uint8Array | null
  headers: readonly (readonly [name: Uint8Array | null, value: Uint8Array | null])[]
}>

export type ReadRecord = ReadEnvelope & Readonly<{ isTombstone: boolean }>

/** The kind of a letter whose original record had no value. A redrive sends no value either. */
export const tombstoneKind = 'tombstone'

const headerNameMax = 512

export function readRecord(record: DeadRecord, now: Instant): ReadRecord {
  const at = record.timestampMs > 0 ? Math.min(record.timestampMs * usPerMs, now) : now
  const headers = record.headers.map(([name, value]): Header => [decodeName(name), value])
  const envelope = parseEnvelope(record.value)
  const read =
    envelope === undefined ? readPlain(record, headers, at) : readEnveloped(record, headers, envelope, at)
  const { letter } = read
  const sourceId = chooseSourceId(letter, record)
  const origin = completeOrigin(letter.origin, record)
  return {
    letter: { ...letter, sourceId, origin, deadLetteredAt: letter.deadLetteredAt ?? at },
    problems: read.problems,
    isTombstone: record.value === null,
  }
}

type ParsedEnvelope = Readonly<{ json: Json; text: string }>

const braceByte = 0x7b

/** Undefined: the value is not an envelope but the original value itself. */
function parseEnvelope(value: Uint8Array | null): ParsedEnvelope | undefined {
  // Most values are no envelopes, and parsing costs more than storing them: look for a field first.
  if (value === null || value[0] !== braceByte) return undefined
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (!bytes.includes('"original_topic"') && !bytes.includes('"original_queue"')) return undefined
  const text = bytes.toString('utf8')
  try {
    const json: unknown = JSON.parse(text)
    if (!isObject(json) || isNestedTooDeep(json)) return undefined
    const isEnvelope = 'original_value' in json || 'error_details' in json || 'error_message' in json
    return isEnvelope ? { json, text } : undefined
  } catch {
    return undefined
  }
}

function readEnveloped(
  record: DeadRecord,
  headers: readonly Header[],
  { json, text }: ParsedEnvelope,
  now: Instant,
): ReadEnvelope {
  const { cluster, topic } = record
  const named = { ...json, cluster: json.cluster ?? cluster }
  const read = readEnvelope(named, text, { origin: sourceOfDeadTopic(topic) ?? topic, now })
  const { letter } = read
  const isUnread = letter.failure.errorCode === 'undecodable'
  return {
    problems: read.problems,
    letter: {
      ...letter,
      // An envelope that cannot be read is kept whole, exactly as the record had it.
      payload: isUnread && record.value !== null ? record.value : letter.payload,
      key: letter.key ?? record.key,
      headers: [...letter.headers, ...headers],
    },
  }
}

function readPlain(record: DeadRecord, headers: readonly Header[], now: Instant): ReadEnvelope {
  const { cluster, key, topic } = record
  const payload = record.value ?? new Uint8Array()
  const origin = sourceOfDeadTopic(topic) ?? topic
  const defaults = { origin, now }
  const problems = new Problems()
  try {
    const reader = new Fields(
      { cluster, ...readFailureHeaders({ cluster }, headers, problems) },
      '{}',
      problems,
    )
    const lastFailedAt = reader.readTime('last_failure_at') ?? now
    const from = readOrigin(reader, defaults, lastFailedAt)
    const failure = readFailure(reader, lastFailedAt, lastFailedAt)
    const letter: CapturedLetter = {
      sourceId: readSourceId(reader, from, problems),
      origin: from,
      payload,
      key,
      headers,
      failure: problems.isUnread ? withProblems(failure, problems.all) : failure,
      history: [],
    }
    return { letter, problems: problems.all }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const { letter } = createUndecodedLetter(payload, cutText(reason, envelopeBounds.messageMax), defaults)
    return { letter: { ...letter, key, headers }, problems: [reason] }
  }
}

/**
 * The identity of the death. With a consumer group it is the place of the original record and the group: a
 * worker that crashes before it commits may write the same death twice. Without a group, two groups that
 * failed could not be distinguished, so it is the place of the record in the dead-letter topic.
 */
function chooseSourceId(letter: CapturedLetter, record: DeadRecord): string {
  if (letter.sourceId !== null && letter.origin.group !== null) return letter.sourceId
  return nameRecord(record)
}

/** `cluster/topic/partition/offset`, with each part encoded as in a URL. */
export function nameRecord({
  cluster,
  topic,
  partition,
  offset,
}: Pick<DeadRecord, 'cluster' | 'topic' | 'partition' | 'offset'>): string {
  return [cluster, topic, String(partition), String(offset)].map(encodeURIComponent).join('/')
}

/** The index of references covers this many characters. */
const referenceMax = 100

/** The place of the record in its dead-letter topic, by which the letter is found. */
export function nameReference(record: Parameters<typeof nameRecord>[0]): string {
  return keepDistinct(nameRecord(record), referenceMax, 'the place of the record', new Problems())
}

/** The letter came from Kafka, even if nothing tells from where exactly. */
function completeOrigin(origin: Origin, { cluster, topic }: DeadRecord): Origin {
  if (origin.kind === 'queue') return origin
  return { ...origin, kind: 'kafka', name: origin.name || topic, cluster }
}

const decoder = new TextDecoder()

function decodeName(name: Uint8Array | null): string {
  return name === null ? '' : cleanText(decoder.decode(name), headerNameMax)
}
