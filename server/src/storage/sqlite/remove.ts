import type { Clear, Delete } from '../storage.ts'
import type { Row } from './database.ts'
import { remove } from './fate.ts'
import type { KnownQueue } from './queues.ts'
import { itemColumnList, itemOf } from './rows.ts'
import type { Transaction } from './transaction.ts'

export function deleteItems(transaction: Transaction, command: Delete): { removed: number } {
  const known = transaction.book.at(command.queue, command.partition)
  const sql = `select ${withoutPayload} from items where queue_id = ? and partition = ? and id = ?`
  const rows: Row[] = []
  for (const id of new Set(command.ids)) {
    const row = transaction.database.get(sql, known.id, command.partition, id)
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
  const place = command.partition === undefined ? '' : `and partition = ${command.partition}`
  const sql = `select ${withoutPayload} from items where queue_id = ? ${place} and (${states.join(' or ')})
    order by partition, id limit ?`
  return removeAll(transaction, known, transaction.database.all(sql, known.id, command.countMax))
}

/** The payload may be large, and is not needed to delete it. */
const withoutPayload = itemColumnList.replace(', payload', ", x'' as payload")

function removeAll(transaction: Transaction, known: KnownQueue, rows: readonly Row[]): { removed: number } {
  for (const row of rows) {
    const item = itemOf(row, known.queue.name)
    remove(transaction, known, item)
    transaction.tally.add(known.id, item.partition, 'deleted')
  }
  return { removed: rows.length }
}
