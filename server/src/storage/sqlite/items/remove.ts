import { discardLetter } from '../../../core/dead-letters/letter.ts'
import { guardedClass } from '../../../core/dead-letters/letter-class.ts'
import { decideRemoval } from '../../../core/dead-letters/letter-decisions.ts'
import { type ItemHead, toListedState } from '../../../core/items/item.ts'
import type { Clear, Delete, ListedState } from '../../contract/items.ts'
import type { Results } from '../../contract/storage.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { checkMayClear } from '../../shared/items/queue-checks.ts'
import {
  checkNotRedriving,
  createRemovalEntries,
  discardReason,
  idsAuditedMax,
  nothingRemoved,
  type Removed,
  removeResult,
} from '../../shared/items/removals.ts'
import { listClearedStates } from '../../shared/letters/cleared-states.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Values } from '../connection/database.ts'
import { endDeletedItem, endDeletedLetter } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { stateConditions } from './list-items.ts'
import { headColumnList, listedCodes, readPayloadLength, toItemHead } from './rows.ts'
import { deleteRow, rewriteRow } from './write-rows.ts'

export function deleteItems(transaction: Transaction, command: Delete): Results['delete'] {
  const { database } = transaction
  const queueRow = transaction.queueCache.getWithPartition(command.queue, command.partition)
  const sql = `select ${headColumnList}, length(payload) from items
    where queue_id = ? and partition = ? and id = ?`
  const rows: Values[] = []
  for (const id of [...new Set(command.ids)].sort()) {
    const row = database.getArray(sql, queueRow.id, command.partition, id)
    if (row !== undefined) rows.push(row)
  }
  const { step, isMore } = takeStep(rows, readPayloadLength, Number.POSITIVE_INFINITY)
  const items = readHeads(queueRow, step)
  for (const item of items) checkNotRedriving(item)
  const done = removeAll(transaction, queueRow, items, command)
  const ids = items.slice(0, idsAuditedMax).map(({ id }) => id)
  insertAudit(database, createRemovalEntries(command.audit, command.queue, done, { ids }))
  return removeResult(done, isMore ? getLastId(items) : null)
}

export function clear(transaction: Transaction, command: Clear): Results['clear'] {
  const queueRow =
    command.partition === undefined
      ? transaction.queueCache.get(command.queue)
      : transaction.queueCache.getWithPartition(command.queue, command.partition)
  const states = listClearedStates(command)
  if (states.length === 0) return removeResult(nothingRemoved, null)
  if (command.isForced !== true && queueRow.queue.letterClass === guardedClass) {
    checkMayClear(queueRow.queue, countLetters(transaction, queueRow, states))
  }
  const isCleared = states.map((state) => stateConditions[state]).join(' or ')
  const sql = `select ${headColumnList}, length(payload) from items
    where queue_id = ? and partition between ? and ? and id > ? and (${isCleared}) order by id limit +?`
  const { partition, countMax, after = '' } = command
  const first = partition ?? 0
  const last = partition ?? queueRow.queue.partitions - 1
  const rows = transaction.database.readArrays(sql, queueRow.id, first, last, after, countMax)
  const { step, isMore } = takeStep(rows, readPayloadLength, countMax)
  const items = readHeads(queueRow, step)
  const done = removeAll(transaction, queueRow, items, command)
  insertAudit(transaction.database, createRemovalEntries(command.audit, command.queue, done))
  return removeResult(done, isMore ? getLastId(items) : null)
}

function readHeads({ queue }: QueueRow, rows: readonly Values[]): ItemHead[] {
  return rows.map((row) => toItemHead(row, queue.name))
}

function getLastId(items: readonly ItemHead[]): string | null {
  return items.at(-1)?.id ?? null
}

/** The number of letters of a queue in these states. */
export function countLetters(
  { database, countChanges }: Transaction,
  { id }: QueueRow,
  states: readonly ListedState[],
): number {
  countChanges.flush(database)
  const codes = JSON.stringify(states.map((state) => listedCodes[state]))
  const sql = `select coalesce(sum(n), 0) from letter_counts
    where queue_id = ? and state in (select value from json_each(?))`
  const row = database.getArray(sql, id, codes)
  return row === undefined ? 0 : readNumber(row, 0)
}

function removeAll(
  transaction: Transaction,
  queueRow: QueueRow,
  items: readonly ItemHead[],
  { now = transaction.now(), audit }: Delete | Clear,
): Removed {
  const letters: Record<string, number> = {}
  const discarded: Removed['discarded'][number][] = []
  let [removed, kept] = [0, 0]
  for (const item of items) {
    const removal = decideRemoval(item)
    const state = toListedState(item)
    if (removal === 'keep') kept++
    else if (removal === 'discard') {
      rewriteRow(transaction, queueRow, item, discardLetter(item, discardReason(audit), now))
      discarded.push({ letterId: item.rootId, state })
    } else {
      removed++
      if (item.origin !== null) letters[state] = (letters[state] ?? 0) + 1
      removeItem(transaction, queueRow, item)
    }
  }
  return { removed, letters, discarded, kept }
}

/**
 * Deletes items of a queue that is deleted, open letters too. Undefined: so few are left that none was
 * deleted.
 */
export function deleteStep(
  transaction: Transaction,
  queueRow: QueueRow,
  countMax: number,
): Pick<Removed, 'removed' | 'letters'> | undefined {
  const sql = `select ${headColumnList}, length(payload) from items where queue_id = ?
    order by partition, id limit +?`
  const rows = transaction.database.readArrays(sql, queueRow.id, countMax)
  const { step, isMore } = takeStep(rows, readPayloadLength, countMax)
  if (!isMore) return undefined
  const letters: Record<string, number> = {}
  for (const item of readHeads(queueRow, step)) {
    const state = toListedState(item)
    if (item.origin !== null) letters[state] = (letters[state] ?? 0) + 1
    removeItem(transaction, queueRow, item)
  }
  return { removed: step.length, letters }
}

function removeItem(transaction: Transaction, queueRow: QueueRow, item: ItemHead): void {
  deleteRow(transaction, queueRow, item)
  transaction.countChanges.add(queueRow.id, item.partition, 'deleted')
  if (item.origin !== null) endDeletedLetter(transaction, item)
  endDeletedItem(transaction, item)
}
