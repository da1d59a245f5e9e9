/**
 * Captured letters on their way to the writer. Whoever asks makes of them what their rows hold, and finds out their
 * causes; the writer, for which everybody waits, only has to bind that. They travel as one flat list: to copy an object
 * for each letter from thread to thread costs more than to store it.
 */
import { type Cause, toCause } from '../../../core/cause.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Import, ImportResult, ItemToImport } from '../../contract/items.ts'
import type { Command } from '../../contract/storage.ts'
import { checkCommand } from '../../shared/check-command.ts'
import { headersToText } from '../items/rows.ts'

type Value = string | number | null

export type EncodedLetters = Readonly<{
  op: 'import-letters'
  queue: string
  partition: number
  now: Instant
  count: number
  /** `valuesPerLetter` for each. */
  values: readonly Value[]
  causes: readonly Cause[]
  /** Keys and payloads, one after the other. */
  bytes: Uint8Array
}>
/** What the writer is asked for. */
export type WriterCommand = Command | EncodedLetters

/** One of them, as it is stored. Without a key its length is null. */
export type EncodedLetter = readonly [
  sourceId: string | null,
  attempts: number,
  attemptsMax: number,
  priority: number,
  kind: string,
  encoding: string,
  reference: string,
  headers: string | null,
  expireDeadline: Instant | null,
  diedAt: Instant | null,
  failure: string | null,
  origin: string,
  history: string | null,
  redrives: number,
  causeAt: number,
  keyBytes: number | null,
  payloadBytes: number,
]
export const valuesPerLetter = 17

/** The answer, flat as well: for each its id, or null; the id of what is there already, or null; when it expires. */
export type EncodedImportResults = Readonly<{ createdAt: Instant; values: readonly Value[] }>
export const valuesPerResult = 3

/** Rejects what no store takes, in the same words as for every other command. */
export function encodeCommand(command: Command): WriterCommand {
  if (command.op !== 'import' || command.items.length === 0 || !command.items.every(isNewLetter))
    return command
  checkCommand(command)
  return encodeLetters(command)
}

/** Waiting, and nothing else: all that ever comes from elsewhere, but for what is imported as it was. */
function isNewLetter(item: ItemToImport): boolean {
  const { origin, lease, availableAt, givenLeaseDeadline, letterId } = item
  return (
    origin != null && lease == null && availableAt == null && givenLeaseDeadline == null && letterId == null
  )
}

function encodeLetters({ queue, partition, now, items }: Import): EncodedLetters {
  const values: Value[] = []
  const causes: Cause[] = []
  const causePlaces = new Map<string, number>()
  const chunks: Uint8Array[] = []
  let length = 0
  const keep = (bytes: Uint8Array): number => {
    chunks.push(bytes)
    length += bytes.byteLength
    return bytes.byteLength
  }
  for (const item of items) {
    const { origin, failure = null, history = [], key = null, headers = [] } = item
    const cause = toCause(failure, origin ?? { name: '' })
    let causeAt = causePlaces.get(cause.fingerprint)
    if (causeAt === undefined) {
      causeAt = causes.push(cause) - 1
      causePlaces.set(cause.fingerprint, causeAt)
    }
    const sent: EncodedLetter = [
      item.sourceId ?? null,
      item.attempts ?? 0,
      item.attemptsMax ?? 0,
      item.priority ?? 0,
      item.kind ?? '',
      item.encoding ?? '',
      item.reference ?? '',
      headersToText(headers),
      item.expireDeadline ?? null,
      item.diedAt ?? null,
      failure && JSON.stringify(failure),
      JSON.stringify(origin),
      history.length === 0 ? null : JSON.stringify(history),
      item.redrives ?? 0,
      causeAt,
      key && keep(key),
      keep(item.payload),
    ]
    for (const value of sent) values.push(value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return { op: 'import-letters', queue, partition, now, count: items.length, values, causes, bytes }
}

/** The results of commands as whoever asked expects them. */
export function decodeResult(sent: WriterCommand, result: unknown): unknown {
  if (sent.op !== 'import-letters') return result
  const { createdAt, values } = result as EncodedImportResults
  return Array.from({ length: sent.count }, (_, index): ImportResult => {
    const at = index * valuesPerResult
    const [id, existingId] = [values[at] as string | null, values[at + 1] as string | null]
    const times = { createdAt, expireDeadline: values[at + 2] as Instant }
    return existingId === null ? { id, ...times } : { id, existingId, ...times }
  })
}
