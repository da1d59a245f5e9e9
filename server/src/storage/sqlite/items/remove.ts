import { guardedClass } from '../../../core/letter-class.ts'
import type { Clear, Delete, ListedState } from '../../contract/items.ts'
import type { Results } from '../../contract/storage.ts'
import { queueEntries, removalDetails } from '../../shared/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { checkOpenLetters } from '../../shared/queue-checks.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Values } from '../connection/database.ts'
import { forgetLetter, loseTrack } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { headColumnList, listedCodes, toItem } from './rows.ts'
import { deleteRow } from './write-rows.ts'

export function deleteItems(transaction: Transaction, command: Delete): { removed: number } {
  const queueRow = transaction.queueCache.getWithPartition(command.queue, command.partition)
  const sql = `select ${headColumnList} from items where queue_id = ? and partition = ? and id = ?`
  const rows: Values[] = []
  for (const id of new Set(command.ids)) {
    const row = transaction.database.array(sql, queueRow.id, command.partition, id)
    if (row !== undefined) rows.push(row)
  }
  const { removed, details, ids } = removeAll(transaction, queueRow, rows)
  const told = { ids: ids.slice(0, idsToldMax), ...details }
  insertAudit(transaction.database, queueEntries(command.trace, command.queue, removed, told))
  return { removed }
}

const idsToldMax = 1_000

export function clear(transaction: Transaction, command: Clear): Results['clear'] {
  const queueRow =
    command.partition === undefined
      ? transaction.queueCache.get(command.queue)
      : transaction.queueCache.getWithPartition(command.queue, command.partition)
  const states = [
    ...(command.isWaiting ? ['(state = 0 and available_at is null)'] : []),
    ...(command.isScheduled ? ['(state = 0 and available_at is not null)'] : []),
    ...(command.isLeased ? ['state = 1'] : []),
  ]
  if (states.length === 0) return { removed: 0, isMore: false }
  if (command.isForced !== true) {
    checkNoGuardedLetters(transaction, queueRow, [
      ...(command.isWaiting ? ['waiting' as const] : []),
      ...(command.isScheduled ? ['scheduled' as const] : []),
      ...(command.isLeased ? ['leased' as const] : []),
    ])
  }
  const sql = `select ${headColumnList}, length(payload) from items where queue_id = ? and partition between ? and ? and (${states.join(' or ')})
    order by id limit +?`
  const { partition, countMax } = command
  const first = partition ?? 0
  const last = partition ?? queueRow.queue.partitions - 1
  const rows = transaction.database.arrays(sql, queueRow.id, first, last, countMax)
  const { step, isMore } = takeStep(rows, (row) => row.at(-1) as number, countMax)
  const { removed, details } = removeAll(transaction, queueRow, step)
  insertAudit(transaction.database, queueEntries(command.trace, command.queue, removed, details))
  return { removed, isMore }
}

/** Letters of a class that is guarded are not erased by the way. */
export function checkNoGuardedLetters(
  { database, tally }: Transaction,
  { id, queue }: QueueRow,
  states: readonly ListedState[],
): void {
  if (queue.letterClass !== guardedClass) return
  tally.flush(database)
  const codes = JSON.stringify(states.map((state) => listedCodes[state]))
  const sql = `select coalesce(sum(n), 0) from letter_counts
    where queue_id = ? and state in (select value from json_each(?))`
  checkOpenLetters(queue, database.array(sql, id, codes)?.[0] as number)
}

function removeAll(
  transaction: Transaction,
  queueRow: QueueRow,
  rows: readonly Values[],
): { removed: number; details: ReturnType<typeof removalDetails>; ids: string[] } {
  const letters: Record<string, number> = {}
  const ids: string[] = []
  for (const row of rows) {
    const item = toItem(row, queueRow.queue.name)
    const state = item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
    ids.push(item.id)
    if (item.origin !== null) letters[state] = (letters[state] ?? 0) + 1
    deleteRow(transaction, queueRow, item)
    transaction.tally.add(queueRow.id, item.partition, 'deleted')
    if (item.origin !== null) forgetLetter(transaction, item)
    loseTrack(transaction, item)
  }
  return { removed: rows.length, details: removalDetails(rows.length, letters), ids }
}
