/**
 * Letters as they were read, without locks, each with the place of its row and the version that stood there. Who changes
 * one names both, and changes nothing when another version is there by now. So it does not matter when they
 * were read: those that are about to be sent can be read while the database still works on others (`foresee`).
 */
import type { ItemHead } from '../../../core/item.ts'
import { awaitAll } from '../connection/await-all.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { int4s, texts, uuids } from '../connection/encode-arrays.ts'
import { type ColumnName, readHeadColumns, toItemHead } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'
import { type HeldLetter, isId } from './letter-rows.ts'

type Version = Readonly<{ place: string; version: string }>
export type SeenLetter = HeldLetter & Version
type ForeseenLetter = Readonly<{ queueId: number; item: ItemHead }> & Version
type Reader = Pick<Connection, 'query'>

/** What went wrong before decides nothing here, and is long. */
const unread: readonly ColumnName[] = ['failure', 'history']
export const seeLetters: Statement = {
  name: 'see-letters',
  text: `select t.* from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    cross join lateral (
      select f.ctid::text as place, f.xmin::text as version, ${readHeadColumns
        .map((name) => (unread.includes(name) ? `null::text as ${name}` : `f.${name}`))
        .join(', ')} from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
}
const nameQueues: Statement = {
  name: 'name-queues',
  text: 'select id, name from redrive.queues where id = any ($1::int4[])',
}

/** While the database reads these, those before them are worked on here. */
const atOnce = 250
const foreseenAtOnce = 100
/** A few steps of campaigns: what is foreseen and then not sent must not stay for ever. */
const foreseenMax = 4_000

/** Letters that were read ahead, until they are asked for: then, or when too many others come, they are gone. */
export class ForeseenLetters {
  readonly #letters = new Map<string, ForeseenLetter>()

  /** A few at a time, and one after the other: what is being written meanwhile is not to wait for what is read ahead. */
  async foresee(reader: Reader, letterIds: readonly string[]): Promise<void> {
    const ids = [...new Set(letterIds)].filter(isId).slice(0, foreseenMax)
    const names = new Map<number, string>()
    for (const some of chunks(ids, foreseenAtOnce)) {
      const rows = await reader.query(seeLetters, [uuids(some), texts(some)])
      const unnamed = new Set(rows.map((row) => row.queue_id as number).filter((id) => !names.has(id)))
      if (unnamed.size > 0) {
        const queues = await reader.query(nameQueues, [int4s([...unnamed])])
        for (const { id, name } of queues) names.set(id as number, name as string)
      }
      for (const row of rows) this.#note(row, names.get(row.queue_id as number))
    }
    for (const id of this.#letters.keys()) {
      if (this.#letters.size <= foreseenMax) break
      this.#letters.delete(id)
    }
  }

  /** Without a name: its queue was deleted meanwhile, and the letter with it. */
  #note(row: Row, queue: string | undefined): void {
    if (queue === undefined) return
    const item = toItemHead(row, queue)
    this.#letters.set(item.rootId, { queueId: row.queue_id as number, item, ...versionOf(row) })
  }

  /** Gives them up: what turns out to be out of date is not met again when all is done again. */
  take(letterIds: readonly string[]): ForeseenLetter[] {
    const taken: ForeseenLetter[] = []
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

/**
 * Those that are there, by root id. What was foreseen counts only for letters that go, because only their version is
 * looked at again: why one does not go is never told by what it was.
 */
export async function see(
  transaction: Transaction,
  letterIds: readonly string[],
  isGoing: (letter: HeldLetter) => boolean,
): Promise<ReadonlyMap<string, SeenLetter>> {
  const ids = [...new Set(letterIds)].filter(isId)
  const seen = new Map<string, SeenLetter>()
  const foreseen = transaction.takeForeseen(ids)
  if (foreseen.length > 0) {
    const queues = await transaction.getByIds(foreseen.map(({ queueId }) => queueId))
    for (const { queueId, item, place, version } of foreseen) {
      const queueRow = queues.get(queueId)
      if (queueRow === undefined || !isGoing({ queueRow, letter: item })) continue
      seen.set(item.rootId, { queueRow, letter: item, place, version })
    }
  }
  const rest = seen.size === 0 ? ids : ids.filter((id) => !seen.has(id))
  const note = async (answer: Promise<Row[]>): Promise<void> => {
    const rows = await answer
    const queues = await transaction.getByIds(rows.map((row) => row.queue_id as number))
    for (const row of rows) {
      const queueRow = queues.get(row.queue_id as number)
      if (queueRow === undefined) continue
      const letter = toItemHead(row, queueRow.queue.name)
      seen.set(letter.rootId, { queueRow, letter, ...versionOf(row) })
    }
  }
  const asked = chunks(rest, atOnce).map((some) =>
    note(transaction.connection.query(seeLetters, [uuids(some), texts(some)])),
  )
  await awaitAll(asked)
  return seen
}

function chunks(ids: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, at) =>
    ids.slice(at * size, (at + 1) * size),
  )
}

function versionOf(row: Row): Version {
  return { place: row.place as string, version: row.version as string }
}
