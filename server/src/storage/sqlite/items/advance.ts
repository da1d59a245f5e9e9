import { onDue } from '../../../core/items/transitions.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { Advance, AdvanceResult } from '../../contract/items.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { executeTransition } from './execute-transitions.ts'
import { itemColumnList, readQueueId, toItem } from './rows.ts'

// Items that are due at the same time become available in the order in which they were produced.
const dueSql = `select ${itemColumnList} from items where due_at <= ? order by due_at, id limit +?`

export function advance(transaction: Transaction, command: Advance): AdvanceResult {
  const { database, queueCache } = transaction
  const rows = database.readArrays(dueSql, command.now, command.countMax)
  const changes = rows.map((row) => {
    const queueRow = queueCache.getById(readQueueId(row))
    const item = toItem(row, queueRow.queue.name)
    const transition = onDue(item, queueRow.queue, command.now, queueCache.random())
    return executeTransition(transaction, queueRow, item, transition, command.now)
  })
  return { changes, isMore: rows.length === command.countMax }
}

export function readNextDueAt(database: Database): Instant | null {
  const row = database.get('select due_at from items where due_at is not null order by due_at limit 1')
  return row === undefined ? null : readNumber(row, 'due_at')
}
