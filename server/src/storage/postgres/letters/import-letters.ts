import type { Connection, Statement } from '../connection/connection.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import { SourceIdExistsError, violatesUniqueIndex } from '../connection/errors.ts'
import { copyStatement, encodeCopyMessages, reuseMessages } from '../items/copy-rows.ts'
import { columnNames, encode, insertSql, type StoredItem } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'

/** For fewer it costs next to nothing to ask, and more to do all of it again. */
const copiedMin = 10

const copySourced = copyStatement('items_sourced', columnNames)
const insertNew: Statement = {
  name: 'insert-sourced',
  text: `${insertSql('items_sourced')}
    on conflict (queue_id, source_id) where source_id is not null do nothing returning id`,
}

/** (`+ 0`: only the index on source ids is a way to one, whatever the table looked like when this was planned.) */
export const findBySource: Statement = {
  name: 'find-by-source',
  text: `select t.* from unnest($1::int4[], $2::text[]) as w(queue_id, source_id)
    cross join lateral (
      select f.queue_id, f.partition, f.id, coalesce(f.root_id, f.id) as root_id, f.source_id from redrive.items_sourced f
      where f.queue_id + 0 = w.queue_id and f.source_id = w.source_id and f.source_id is not null offset 0) t`,
}

/** Those that were not inserted: by their id, the root id of what is there instead. */
export type Skipped = ReadonlyMap<string, string | undefined>
const none: Skipped = new Map()

/** The queues whose last batch had letters that were there already. */
export class Repeats {
  readonly #queueIds = new Set<number>()

  areExpected(queueIds: readonly number[]): boolean {
    return queueIds.some((queueId) => this.#queueIds.has(queueId))
  }

  note(queueIds: readonly number[], hadSome: boolean): void {
    for (const queueId of queueIds) {
      if (hadSome) this.#queueIds.add(queueId)
      else this.#queueIds.delete(queueId)
    }
  }
}

export async function insertLetterRows(
  transaction: Transaction,
  rows: readonly StoredItem[],
): Promise<Skipped> {
  if (rows.length === 0) return none
  const { connection } = transaction
  const queueIds = [...new Set(rows.map(({ queueId }) => queueId))]
  if (rows.length >= copiedMin && !transaction.expectsRepeats(queueIds)) {
    try {
      const messages = encodeCopyMessages(columnNames, rows, true)
      await connection.copy(copySourced, messages)
      reuseMessages(messages)
      return none
    } catch (error) {
      if (violatesUniqueIndex(error, 'items_sourced_source')) throw new SourceIdExistsError(queueIds)
      throw error
    }
  }
  const inserted = await connection.query(insertNew, encode(columnNames, rows))
  transaction.recordRepeats(queueIds, inserted.length < rows.length)
  if (inserted.length === rows.length) return none
  const newIds = new Set(inserted.map((row) => row.id as string))
  return rootIdsOf(
    connection,
    rows.filter(({ item }) => !newIds.has(item.id)),
  )
}

async function rootIdsOf(connection: Connection, skipped: readonly StoredItem[]): Promise<Skipped> {
  const rows = await connection.query(findBySource, [
    int4s(skipped.map(({ queueId }) => queueId)),
    texts(skipped.map(({ item }) => item.sourceId)),
  ])
  const there = new Map(rows.map((row) => [`${row.queue_id}/${row.source_id}`, row.root_id as string]))
  return new Map(skipped.map(({ queueId, item }) => [item.id, there.get(`${queueId}/${item.sourceId}`)]))
}
