import type { Archive } from '../storage.ts'
import type { Statement } from './connections.ts'
import { isAt } from './locate.ts'
import { sumOfGone, tallyGone } from './remove.ts'
import { columnNames } from './rows.ts'
import type { Transaction } from './transaction.ts'

const list = columnNames.join(', ')

/** One statement moves: exactly the rows that are deleted are the ones that are inserted. */
export const archiveEnded: Statement = {
  name: 'archive-ended',
  text: `with picked as materialized (
      select t.tableoid as home, t.ctid as place from redrive.items t
      where t.queue_id = $1 and t.ended_at < $2
      order by t.ended_at, t.id limit $3 for update of t skip locked
    ), gone as (
      delete from redrive.items t using picked p
      where ${isAt('t', 'p')}
      returning t.*
    ), kept as (
      insert into redrive.archive (${list}, is_sourced, archived_at) select ${list}, is_sourced, $4 from gone
    ) ${sumOfGone}`,
}

export async function archive(transaction: Transaction, command: Archive): Promise<{ archived: number }> {
  const { id } = await transaction.get(command.queue)
  const values = [id, command.endedBefore, command.countMax, command.now]
  const rows = await transaction.connection.query(archiveEnded, values)
  return { archived: tallyGone(transaction, rows, 'archived') }
}
