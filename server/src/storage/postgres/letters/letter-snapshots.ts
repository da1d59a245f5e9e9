/**
 * Letters that were read without locks, each with the location (ctid) and the version (xmin) of its row. A
 * statement that changes such a letter names both, and changes nothing if the row has another version by
 * then. So snapshots may be old: letters that a campaign sends next are read while the database still writes
 * the letters before them (`prefetch`).
 */
import type { ItemHead } from '../../../core/items/item.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { awaitAll } from '../connection/await-all.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { type ColumnName, readHeadColumns, toItemHead } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'
import { type FoundLetter, isKsuid } from './letter-rows.ts'

type RowVersion = Readonly<{ location: string; version: string }>
export type LetterSnapshot = FoundLetter & RowVersion
type PrefetchedLetter = Readonly<{ queueId: number; letter: ItemHead }> & RowVersion
type Reader = Pick<Connection, 'query'>

/** Failures are long, and no decision about a redrive needs them. */
const omitted: readonly ColumnName[] = ['failure', 'history']
export const readSnapshotRows: Statement = {
  name: 'read-letter-snapshots',
  text: `select t.* from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    cross join lateral (
      select f.ctid::text as location, f.xmin::text as version, ${readHeadColumns
        .map((name) => (omitted.includes(name) ? `null::text as ${name}` : `f.${name}`))
        .join(', ')} from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
}
const readNames: Statement = {
  name: 'read-queue-names',
  text: 'select id, name from redrive.queues where id = any ($1::int4[])',
}

/** Letters per statement. While the database reads them, the answer to the statement before is decoded. */
const lettersPerRead = 250
/** Letters per statement of a prefetch, which are fewer, so that writes do not wait for it. */
const lettersPerPrefetch = 100
/** A few steps of campaigns. Letters that are prefetched and then not sent must not stay forever. */
const prefetchedMax = 4_000

/**
 * Snapshots that were read ahead. They are removed when they are taken, or when newer ones need the space.
 */
export class PrefetchedLetters {
  readonly #letters = new Map<string, PrefetchedLetter>()

  /** Sends one short statement after the other, so that writes do not wait for it. */
  async prefetch(reader: Reader, letterIds: readonly string[]): Promise<void> {
    const ids = [...new Set(letterIds)].filter(isKsuid).slice(0, prefetchedMax)
    const names = new Map<number, string>()
    for (const chunk of splitIntoChunks(ids, lettersPerPrefetch)) {
      const rows = await reader.query(readSnapshotRows, [encodeUuids(chunk), encodeTexts(chunk)])
      await addNames(reader, rows, names)
      for (const row of rows) this.#put(row, names.get(readNumber(row, 'queue_id')))
    }
    for (const id of this.#letters.keys()) {
      if (this.#letters.size <= prefetchedMax) break
      this.#letters.delete(id)
    }
  }

  /** `queueName`: undefined if the queue was deleted in the meantime, and its letters with it. */
  #put(row: Row, queueName: string | undefined): void {
    if (queueName === undefined) return
    const letter = toItemHead(row, queueName)
    const queueId = readNumber(row, 'queue_id')
    this.#letters.set(letter.rootId, { queueId, letter, ...decodeVersion(row) })
  }

  /** Removes what it returns, so that a transaction that found an outdated snapshot reads it again. */
  take(letterIds: readonly string[]): PrefetchedLetter[] {
    const taken: PrefetchedLetter[] = []
    if (this.#letters.size === 0) return taken
    for (const id of letterIds) {
      const letter = this.#letters.get(id)
      if (letter === undefined) continue
      this.#letters.delete(id)
      taken.push(letter)
    }
    return taken
  }
}

/** Adds the names of the rows' queues that are not in `names` yet. */
async function addNames(reader: Reader, rows: readonly Row[], names: Map<number, string>): Promise<void> {
  const queueIds = new Set(rows.map((row) => readNumber(row, 'queue_id')))
  const unnamed = [...queueIds].filter((id) => !names.has(id))
  if (unnamed.length === 0) return
  const queues = await reader.query(readNames, [encodeInt4s(unnamed)])
  for (const row of queues) names.set(readNumber(row, 'id'), readText(row, 'name'))
}

/**
 * The letters that exist, by id. A prefetched snapshot is used only if `isSendable`: then the version of the
 * row is checked when the letter is sent. A refusal needs the current letter.
 */
export async function readSnapshots(
  transaction: Transaction,
  letterIds: readonly string[],
  isSendable: (found: FoundLetter) => boolean,
): Promise<ReadonlyMap<string, LetterSnapshot>> {
  const ids = [...new Set(letterIds)].filter(isKsuid)
  const snapshots = new Map<string, LetterSnapshot>()
  const prefetched = transaction.takePrefetched(ids)
  if (prefetched.length > 0) await addPrefetched(transaction, prefetched, isSendable, snapshots)
  const rest = snapshots.size === 0 ? ids : ids.filter((id) => !snapshots.has(id))
  const addSnapshots = async (chunk: readonly string[]): Promise<void> => {
    const rows = await transaction.connection.query(readSnapshotRows, [
      encodeUuids(chunk),
      encodeTexts(chunk),
    ])
    const queues = await transaction.getByIds(rows.map((row) => readNumber(row, 'queue_id')))
    for (const row of rows) {
      const queueRow = queues.get(readNumber(row, 'queue_id'))
      if (queueRow === undefined) continue
      const letter = toItemHead(row, queueRow.queue.name)
      snapshots.set(letter.rootId, { queueRow, letter, ...decodeVersion(row) })
    }
  }
  await awaitAll(splitIntoChunks(rest, lettersPerRead).map(addSnapshots))
  return snapshots
}

async function addPrefetched(
  transaction: Transaction,
  prefetched: readonly PrefetchedLetter[],
  isSendable: (found: FoundLetter) => boolean,
  snapshots: Map<string, LetterSnapshot>,
): Promise<void> {
  const queues = await transaction.getByIds(prefetched.map(({ queueId }) => queueId))
  for (const { queueId, letter, location, version } of prefetched) {
    const queueRow = queues.get(queueId)
    if (queueRow === undefined || !isSendable({ queueRow, letter })) continue
    snapshots.set(letter.rootId, { queueRow, letter, location, version })
  }
}

function splitIntoChunks(ids: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, index) =>
    ids.slice(index * size, (index + 1) * size),
  )
}

function decodeVersion(row: Row): RowVersion {
  return { location: readText(row, 'location'), version: readText(row, 'version') }
}
