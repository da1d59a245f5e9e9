import { listedState } from '../../../core/item.ts'
import { guardedClass } from '../../../core/letter-class.ts'
import type { Clear, Delete, ListedState } from '../../contract/items.ts'
import type { Results } from '../../contract/storage.ts'
import { queueEntries, removalDetails } from '../../shared/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { clearedStates } from '../../shared/cleared-states.ts'
import { checkOpenLetters } from '../../shared/queue-checks.ts'
import { readNumber } from '../../shared/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Values } from '../connection/database.ts'
import { endDeletedItem, endDeletedLetter } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { stateConditions } from './list-items.ts'
import { headColumnList, listedCodes, readPayloadLength, toItemHead } from './rows.ts'
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
  const withIds = { ids: ids.slice(0, idsAuditedMax), ...details }
  insertAudit(transaction.database, queueEntries(command.trace, command.queue, removed, withIds))
  return { removed }
}

/** The largest number of ids in an audit row. */
const idsAuditedMax = 1_000

export function clear(transaction: Transaction, command: Clear): Results['clear'] {
  const queueRow =
    command.partition === undefined
      ? transaction.queueCache.get(command.queue)
      : transaction.queueCache.getWithPartition(command.queue, command.partition)
  const states = clearedStates(command)
  if (states.length === 0) return { removed: 0, isMore: false }
  if (command.isForced !== true) checkNoGuardedLetters(transaction, queueRow, states)
  const isCleared = states.map((state) => stateConditions[state]).join(' or ')
  const sql = `select ${headColumnList}, length(payload) from items
    where queue_id = ? and partition between ? and ? and (${isCleared}) order by id limit +?`
  const { partition, countMax } = command
  const first = partition ?? 0
  const last = partition ?? queueRow.queue.partitions - 1
  const rows = transaction.database.arrays(sql, queueRow.id, first, last, countMax)
  const { step, isMore } = takeStep(rows, readPayloadLength, countMax)
  const { removed, details } = removeAll(transaction, queueRow, step)
  insertAudit(transaction.database, queueEntries(command.trace, command.queue, removed, details))
  return { removed, isMore }
}

/** Refuses to delete open letters of a queue whose class is guarded. */
export function checkNoGuardedLetters(
  { database, countChanges }: Transaction,
  { id, queue }: QueueRow,
  states: readonly ListedState[],
): void {
  if (queue.letterClass !== guardedClass) return
  countChanges.flush(database)
  const codes = JSON.stringify(states.map((state) => listedCodes[state]))
  const sql = `select coalesce(sum(n), 0) from letter_counts
    where queue_id = ? and state in (select value from json_each(?))`
  const row = database.array(sql, id, codes)
  checkOpenLetters(queue, row === undefined ? 0 : readNumber(row, 0))
}

function removeAll(
  transaction: Transaction,
  queueRow: QueueRow,
  rows: readonly Values[],
): { removed: number; details: ReturnType<typeof removalDetails>; ids: string[] } {
  const letters: Record<string, number> = {}
  const ids: string[] = []
  for (const row of rows) {
    const item = toItemHead(row, queueRow.queue.name)
    const state = listedState(item)
    ids.push(item.id)
    if (item.origin !== null) letters[state] = (letters[state] ?? 0) + 1
    deleteRow(transaction, queueRow, item)
    transaction.countChanges.add(queueRow.id, item.partition, 'deleted')
    if (item.origin !== null) endDeletedLetter(transaction, item)
    endDeletedItem(transaction, item)
  }
  return { removed: rows.length, details: removalDetails(rows.length, letters), ids }
}
