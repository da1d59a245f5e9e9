/**
 * Captured letters on their way to the writer thread. The server's thread computes the values of their rows
 * and their causes; the writer, for which every caller waits, only binds the values. The letters travel as
 * one flat list, because copying an object per letter between threads costs more than storing it.
 */
import { type Cause, toCause } from '../../../core/dead-letters/cause.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { Import, ImportResult, ItemToImport } from '../../contract/items.ts'
import type { Command } from '../../contract/storage.ts'
import { checkCommand } from '../../shared/items/check-command.ts'
import { encodeFailure, encodeHeaders, encodeHistory } from '../../shared/items/item-row.ts'
import { concatenate } from './thread-messages.ts'

type Value = string | number | null

export type EncodedLetters = Readonly<{
  op: 'import-letters'
  queue: string
  partition: number
  now: Instant
  count: number
  /** `valuesPerLetter` values for each letter. */
  values: readonly Value[]
  causes: readonly Cause[]
  /** The key and the payload of each letter, in their order. */
  bytes: Uint8Array
  isNewOnly: boolean
}>
/** A command as the writer gets it. */
export type WriterCommand = Command | EncodedLetters

/** The values of one letter's row. `keyBytes` is null for a letter without a key. */
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
  deadLetteredAt: Instant | null,
  failure: string | null,
  origin: string,
  history: string | null,
  retryCount: number,
  causeIndex: number,
  keyBytes: number | null,
  payloadBytes: number,
]
export const valuesPerLetter = 17

/**
 * The results, also flat. For each letter: its id or null, the existing letter's id or null, its expire
 * deadline.
 */
export type EncodedImportResults = Readonly<{ createdAt: Instant; values: readonly Value[] }>
export const valuesPerResult = 3

/**
 * Encodes an import of captured letters; other commands are sent as they are. Throws if the letters are
 * invalid.
 */
export function encodeCommand(command: Command): WriterCommand {
  if (command.op !== 'import' || command.items.length === 0 || !command.items.every(isNewLetter))
    return command
  checkCommand(command)
  return encodeLetters(command)
}

/** A captured letter: waiting, without a lease, a schedule or another letter that it belongs to. */
function isNewLetter(item: ItemToImport): boolean {
  const { origin, lease, availableAt, givenLeaseDeadline, letterId } = item
  return (
    origin != null && lease == null && availableAt == null && givenLeaseDeadline == null && letterId == null
  )
}

function encodeLetters({ queue, partition, now, items, isNewOnly = false }: Import): EncodedLetters {
  const values: Value[] = []
  const causes = new CauseList()
  const chunks: Uint8Array[] = []
  let length = 0
  const keep = (bytes: Uint8Array): number => {
    chunks.push(bytes)
    length += bytes.byteLength
    return bytes.byteLength
  }
  for (const item of items) {
    for (const value of encodeLetter(item, causes.indexCause(item), keep)) values.push(value)
  }
  const bytes = concatenate(chunks, length)
  return {
    op: 'import-letters',
    queue,
    partition,
    now,
    count: items.length,
    values,
    causes: causes.list,
    bytes,
    isNewOnly,
  }
}

/** The distinct causes of the letters: there are far fewer causes than letters. */
class CauseList {
  readonly list: Cause[] = []
  readonly #indexes = new Map<string, number>()

  indexCause({ failure = null, origin }: ItemToImport): number {
    const cause = toCause(failure, origin ?? { name: '' })
    let index = this.#indexes.get(cause.fingerprint)
    if (index === undefined) {
      index = this.list.push(cause) - 1
      this.#indexes.set(cause.fingerprint, index)
    }
    return index
  }
}

/** `keep` takes bytes for the block and returns their length. */
function encodeLetter(
  item: ItemToImport,
  causeIndex: number,
  keep: (bytes: Uint8Array) => number,
): EncodedLetter {
  const { failure = null, history = [], key = null, headers = [] } = item
  const { attempts = 0, attemptsMax = 0, priority = 0, retryCount = 0 } = item
  const { kind = '', encoding = '', reference = '' } = item
  return [
    item.sourceId ?? null,
    attempts,
    attemptsMax,
    priority,
    kind,
    encoding,
    reference,
    encodeHeaders(headers),
    item.expireDeadline ?? null,
    item.deadLetteredAt ?? null,
    encodeFailure(failure),
    JSON.stringify(item.origin),
    encodeHistory(history),
    retryCount,
    causeIndex,
    key && keep(key),
    keep(item.payload),
  ]
}

/** Turns the writer's result of a command into the result of the contract. */
export function decodeResult(command: WriterCommand, result: unknown): unknown {
  if (command.op !== 'import-letters') return result
  const { createdAt, values } = result as EncodedImportResults
  return Array.from({ length: command.count }, (_, index): ImportResult => {
    const at = index * valuesPerResult
    const [id, existingId] = [values[at] as string | null, values[at + 1] as string | null]
    const times = { createdAt, expireDeadline: values[at + 2] as Instant }
    return existingId === null ? { id, ...times } : { id, existingId, ...times }
  })
}
