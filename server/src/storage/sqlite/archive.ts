import type { Archive } from '../storage.ts'
import { itemColumnList, stateCodes } from './rows.ts'
import type { Transaction } from './transaction.ts'

const pickSql = `select partition, id, state from items
  where queue_id = ? and ended_at < ? order by ended_at, id limit +?`
const copySql = `insert into archive (${itemColumnList}, archived_at)
  select ${itemColumnList}, ? from items where queue_id = ? and partition = ? and id = ?`
const deleteSql = 'delete from items where queue_id = ? and partition = ? and id = ?'

/** One writer, one transaction: the set that is copied cannot differ from the set that is deleted. */
export function archive({ database, book, tally }: Transaction, command: Archive): { archived: number } {
  const known = book.get(command.queue)
  const rows = database.all(pickSql, known.id, command.endedBefore, command.countMax)
  for (const row of rows) {
    const place = [known.id, row.partition as number, row.id as string] as const
    database.run(copySql, command.now, ...place)
    database.run(deleteSql, ...place)
    tally.add(known.id, place[1], row.state === stateCodes.done ? 'done' : 'dead', -1)
    tally.add(known.id, place[1], 'archived')
  }
  return { archived: rows.length }
}
