/** Inserts imported letters, and other imported items with a source id, which are unique in their queue. */
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { SourceIdExistsError, violatesUniqueIndex } from '../connection/errors.ts'
import { copyStatement, encodeCopyMessages, reuseMessages } from '../items/copy-rows.ts'
import { columnNames, encode, insertSql, type StoredItem } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'

/**
 * From this number of rows on, COPY is used. It is faster than an insert, but fails as a whole if one source
 * id exists already. For fewer rows it saves almost nothing.
 */
const copiedMin = 10

const copyRows = copyStatement('items_sourced', columnNames)
const insertNew: Statement = {
  name: 'insert-sourced',
  text: `${insertSql('items_sourced')}
    on conflict (queue_id, source_id) where source_id is not null do nothing returning id`,
}

/**
 * `+ 0` leaves only the index on source ids to find a row, even if the table was small when the statement was
 * planned.
 */
export const findBySource: Statement = {
  name: 'find-by-source',
  text: `select t.* from unnest($1::int4[], $2::text[]) as w(queue_id, source_id)
    cross join lateral (
      select f.queue_id, f.partition, f.id, coalesce(f.root_id, f.id) as root_id, f.source_id from redrive.items_sourced f
      where f.queue_id + 0 = w.queue_id and f.source_id = w.source_id and f.source_id is not null offset 0) t`,
}

/** The rows that were not inserted: by their id, the root id of the row that has their source id. */
export type ExistingRows = ReadonlyMap<string, string | undefined>
const none: ExistingRows = new Map()

/** The queues whose last batch had source ids that existed already. Their next batch is not copied. */
export class RepeatedImports {
  readonly #queueIds = new Set<number>()

  areExpected(queueIds: readonly number[]): boolean {
    return queueIds.some((queueId) => this.#queueIds.has(queueId))
  }

  record(queueIds: readonly number[], hadRepeats: boolean): void {
    for (const queueId of queueIds) {
      if (hadRepeats) this.#queueIds.add(queueId)
      else this.#queueIds.delete(queueId)
    }
  }
}

export async function insertLetterRows(
  transaction: Transaction,
  rows: readonly StoredItem[],
): Promise<ExistingRows> {
  if (rows.length === 0) return none
  const { connection } = transaction
  const queueIds = [...new Set(rows.map(({ queueId }) => queueId))]
  if (rows.length >= copiedMin && !transaction.expectsRepeats(queueIds)) {
    await copyNew(connection, rows, queueIds)
    return none
  }
  const inserted = await connection.query(insertNew, encode(columnNames, rows))
  transaction.recordRepeats(queueIds, inserted.length < rows.length)
  if (inserted.length === rows.length) return none
  const newIds = new Set(inserted.map((row) => readText(row, 'id')))
  return findExisting(
    connection,
    rows.filter(({ item }) => !newIds.has(item.id)),
  )
}

async function copyNew(
  connection: Connection,
  rows: readonly StoredItem[],
  queueIds: readonly number[],
): Promise<void> {
  try {
    const messages = encodeCopyMessages(columnNames, rows, true)
    await connection.copy(copyRows, messages)
    reuseMessages(messages)
  } catch (error) {
    if (violatesUniqueIndex(error, 'items_sourced_source')) throw new SourceIdExistsError(queueIds)
    throw error
  }
}

async function findExisting(
  connection: Connection,
  notInserted: readonly StoredItem[],
): Promise<ExistingRows> {
  const rows = await connection.query(findBySource, [
    encodeInt4s(notInserted.map(({ queueId }) => queueId)),
    encodeTexts(notInserted.map(({ item }) => item.sourceId)),
  ])
  const toSourceKey = (queueId: number, sourceId: string | null) => `${queueId}/${sourceId}`
  const rootIds = new Map(
    rows.map((row) => [
      toSourceKey(readNumber(row, 'queue_id'), readText(row, 'source_id')),
      readText(row, 'root_id'),
    ]),
  )
  return new Map(
    notInserted.map(({ queueId, item }) => [item.id, rootIds.get(toSourceKey(queueId, item.sourceId))]),
  )
}
