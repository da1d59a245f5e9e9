import type { Clear, Delete } from '../storage.ts'
import type { Values } from './database.ts'
import { lightColumnList, remove } from './items.ts'
import { forgetLetter, loseTrack } from './letter-end.ts'
import type { KnownQueue } from './queues.ts'
import { itemOf } from './rows.ts'
import type { Transaction } from './transaction.ts'

export function deleteItems(transaction: Transaction, command: Delete): { removed: number } {
  const known = transaction.book.at(command.queue, command.partition)
  const sql = `select ${lightColumnList} from items where queue_id = ? and partition = ? and id = ?`
  const rows: Values[] = []
  for (const id of new Set(command.ids)) {
    const row = transaction.database.array(sql, known.id, command.partition, id)
    if (row !== undefined) rows.push(row)
  }
  return removeAll(transaction, known, rows)
}

export function clear(transaction: Transaction, command: Clear): { removed: number } {
  const known =
    command.partition === undefined
      ? transaction.book.get(command.queue)
      : transaction.book.at(command.queue, command.partition)
  const states = [
    ...(command.isWaiting ? ['(state = 0 and available_at is null)'] : []),
    ...(command.isScheduled ? ['(state = 0 and available_at is not null)'] : []),
    ...(command.isLeased ? ['state = 1'] : []),
  ]
  if (states.length === 0) return { removed: 0 }
  const sql = `select ${lightColumnList} from items where queue_id = ? and partition between ? and ? and (${states.join(' or ')})
    order by id limit +?`
  const { partition, countMax } = command
  const first = partition ?? 0
  const last = partition ?? known.queue.partitions - 1
  return removeAll(transaction, known, transaction.database.arrays(sql, known.id, first, last, countMax))
}

function removeAll(
  transaction: Transaction,
  known: KnownQueue,
  rows: readonly Values[],
): { removed: number } {
  for (const row of rows) {
    const item = itemOf(row, known.queue.name)
    remove(transaction, known, item)
    transaction.tally.add(known.id, item.partition, 'deleted')
    if (item.origin !== null) forgetLetter(transaction, item)
    loseTrack(transaction, item)
  }
  return { removed: rows.length }
}
