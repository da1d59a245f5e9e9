import { decideSettle } from '../../../core/items/decide-settle.ts'
import type { Item, Leased } from '../../../core/items/item.ts'
import { changeByComplete, changeByExtend, type ItemChange } from '../../../core/items/plan-transition.ts'
import {
  complete as completed,
  computeDoneDueAt,
  correctLease,
  firstDeadline,
  leasesOfStep,
  retryItem,
  unlease as unleasedItem,
} from '../../../core/items/transitions.ts'
import type {
  Complete,
  CorrectLeases,
  CorrectLeasesResult,
  Extend,
  Retry,
  SettleResult,
  Unlease,
} from '../../contract/items.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database, Values } from '../connection/database.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { executeTransition } from './execute-transitions.ts'
import { itemColumnList, stateCodes, toItem } from './rows.ts'
import { rewriteRow } from './write-rows.ts'

/**
 * An item is plain if it is leased, no letter and no redrive. A plain item is deleted or kept as done when it
 * is completed, so neither its payload nor its other columns need to be read.
 */
const plainSql = `select rowid, created_at, lease_deadline,
    state = ${stateCodes.leased} and origin is null and letter_id is null as is_plain
  from items where queue_id = ? and partition = ? and id = ?`
const deleteSql = 'delete from items where rowid = ?'
const keepSql = `update items set state = ${stateCodes.done}, updated_at = ?, ended_at = ?, lease_holder = null,
    lease_deadline = null, due_at = ? where rowid = ?`

export function complete(transaction: Transaction, command: Complete): SettleResult {
  return (
    tryCompletePlain(transaction, command) ??
    settle(transaction, command, command.ids, (queueRow, item) =>
      executeTransition(transaction, queueRow, item, completed(item, queueRow.queue), command.now),
    )
  )
}

/** Undefined, with nothing changed, if an item is not plain. */
function tryCompletePlain(transaction: Transaction, command: Complete): SettleResult | undefined {
  const { database, queueCache, countChanges } = transaction
  const { partition, ids, now } = command
  const queueRow = queueCache.getWithPartition(command.queue, partition)
  if (new Set(ids).size < ids.length) return undefined
  const rows: Values[] = []
  for (const id of ids) {
    const row = database.getArray(plainSql, queueRow.id, partition, id)
    if (row === undefined || readNumber(row, 3) !== 1) return undefined
    rows.push(row)
  }
  const isKept = queueRow.queue.doneRetentionUs > 0
  const dueAt = computeDoneDueAt(now, queueRow.queue)
  for (const row of rows) {
    if (isKept) database.run(keepSql, now, now, dueAt, readNumber(row, 0))
    else database.run(deleteSql, readNumber(row, 0))
    countChanges.removeLeased(queueRow.id, partition, readNumber(row, 1), readNumber(row, 2))
  }
  countChanges.add(queueRow.id, partition, isKept ? 'done' : 'completed', rows.length)
  return { isSettled: true, changes: ids.map((id) => changeByComplete(command, id, isKept)) }
}

export function retry(transaction: Transaction, command: Retry): SettleResult {
  const ids = command.items.map((item) => item.id)
  return settle(transaction, command, ids, (queueRow, item, index) => {
    const request = command.items[index] as Retry['items'][number]
    const transition = retryItem(item, request, queueRow.queue, command.now)
    return executeTransition(transaction, queueRow, item, transition, command.now)
  })
}

const extendSql = `update items set lease_deadline = ?, due_at = ?, updated_at = ?
  where queue_id = ? and partition = ? and id = ?`

export function extend(transaction: Transaction, command: Extend): SettleResult {
  return settle(transaction, command, command.ids, (queueRow, item): ItemChange => {
    const { deadline, now, partition } = command
    transaction.database.run(extendSql, deadline, deadline, now, queueRow.id, partition, item.id)
    transaction.countChanges.leave(queueRow.id, item)
    transaction.countChanges.enter(queueRow.id, { ...item, lease: { ...item.lease, deadline } })
    return changeByExtend(item)
  })
}

const leasesExamined = 2_000
const examineSql = `select due_at, id, queue_id, partition, state = ${stateCodes.leased} and updated_at > ?1 and updated_at <= ?2
  from items where due_at is not null and (due_at, id) > (?3, ?4) order by due_at, id limit +?5`

/** Reads all items with a due time, because no index has only the leased ones. */
export function correctLeases(
  transaction: Transaction,
  { step, now, after }: CorrectLeases,
): CorrectLeasesResult {
  const { database, queueCache, countChanges } = transaction
  if (database.getArray('select 1 from counts where leased > 0 limit 1') === undefined) {
    return { corrected: 0, next: null }
  }
  const given = leasesOfStep(step, now)
  const from = after ?? { deadline: firstDeadline(step, now), key: '' }
  const values = [given.after, given.until, from.deadline, from.key, leasesExamined]
  const rows = database.readArrays(examineSql, ...values)
  let corrected = 0
  for (const row of rows) {
    if (readNumber(row, 4) === 0) continue
    const queueRow = queueCache.getById(readNumber(row, 2))
    const item = findItem(database, queueRow, readNumber(row, 3), readText(row, 1))
    const deadline = item?.state === 'leased' ? correctLease(item, step, now) : undefined
    if (item?.state !== 'leased' || deadline === undefined) continue
    database.run(extendSql, deadline, deadline, now, queueRow.id, item.partition, item.id)
    countChanges.leave(queueRow.id, item)
    countChanges.enter(queueRow.id, { ...item, lease: { ...item.lease, deadline } })
    corrected++
  }
  const last = rows.at(-1)
  const isEnd = last === undefined || rows.length < leasesExamined
  return { corrected, next: isEnd ? null : { deadline: readNumber(last, 0), key: readText(last, 1) } }
}

export function unlease(transaction: Transaction, command: Unlease): { unleased: number } {
  const { database, queueCache } = transaction
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const find = (id: string) => findItem(database, queueRow, command.partition, id)
  const { items } = decideSettle(command.ids, find)
  for (const item of items) rewriteRow(transaction, queueRow, item, unleasedItem(item, command.now))
  return { unleased: items.length }
}

const findSql = `select ${itemColumnList} from items where queue_id = ? and partition = ? and id = ?`

export function findItem(
  database: Database,
  queueRow: QueueRow,
  partition: number,
  id: string,
): Item | undefined {
  const row = database.getArray(findSql, queueRow.id, partition, id)
  return row && toItem(row, queueRow.queue.name)
}

/** All or nothing: decides about every item first, and changes none if one of them is refused. */
function settle(
  { database, queueCache }: Transaction,
  command: Readonly<{ queue: string; partition: number }>,
  ids: readonly string[],
  settleOne: (queueRow: QueueRow, item: Leased, index: number) => ItemChange,
): SettleResult {
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const { items, refused } = decideSettle(ids, (id) => findItem(database, queueRow, command.partition, id))
  if (refused.length > 0) return { isSettled: false, refused }
  return { isSettled: true, changes: items.map((item, index) => settleOne(queueRow, item, index)) }
}
