import type { Instant } from '../../../core/instant.ts'
import { onDue } from '../../../core/transitions.ts'
import type { Advance, AdvanceResult } from '../../contract/items.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { executeTransition } from './execute-transitions.ts'
import { itemColumnList, toItem } from './rows.ts'

// Ties by id: what was produced first becomes available first.
const dueSql = `select ${itemColumnList} from items where due_at <= ? order by due_at, id limit +?`

export function advance(transaction: Transaction, command: Advance): AdvanceResult {
  const { database, queueCache } = transaction
  const rows = database.arrays(dueSql, command.now, command.countMax)
  const changes = rows.map((row) => {
    const queueRow = queueCache.getById(row[0] as number)
    const item = toItem(row, queueRow.queue.name)
    return executeTransition(
      transaction,
      queueRow,
      item,
      onDue(item, queueRow.queue, command.now),
      command.now,
    )
  })
  return { changes, isMore: rows.length === command.countMax }
}

export function nextDueAt(database: Database): Instant | null {
  const row = database.get('select due_at from items where due_at is not null order by due_at limit 1')
  return (row?.due_at as number | undefined) ?? null
}
