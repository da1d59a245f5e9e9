/** Inserts, rewrites and deletes rows of `items`, each together with its counts. */

import { computeFailedAgainAt, isRegrouped } from '../../../core/dead-letters/letter.ts'
import type { Item, ItemHead } from '../../../core/items/item.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { readBytes } from '../../shared/rows/row-values.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { itemColumnList, itemColumns, toHeadValues, toItemValues } from './rows.ts'

/** The number of the arrival of a letter that is stored or restored now (migrations/0003_arrivals.ts). */
export const arrivalSql = '(select number from arrivals)'
const parameters = itemColumns.map(() => '?').join(', ')
const insertSql = `insert into items (${itemColumnList}) values (${parameters})`
const insertLetterSql = `insert into items (${itemColumnList}, arrival) values (${parameters}, ${arrivalSql})`
const onceSql = 'on conflict (queue_id, source_id) where source_id is not null do nothing'
const insertOnceSql = `${insertSql} ${onceSql}`
const insertLetterOnceSql = `${insertLetterSql} ${onceSql}`
const arrivedSql = `update items set arrival = ${arrivalSql} where queue_id = ? and partition = ? and id = ?`

/** Returns the item as stored; undefined, with nothing changed, if its source id is already in the queue. */
export function insertItem(transaction: Transaction, queueRow: QueueRow, item: Item): Item | undefined {
  const { database, groups, keyRuns, countChanges } = transaction
  let stored = item
  let keyRun: number | null = null
  if (item.origin !== null) {
    const seenAt = item.deadLetteredAt ?? item.createdAt
    // Check the source id first, so that no group is created for a letter that is not stored.
    const isNew = () => !hasSource(transaction, queueRow, item.sourceId)
    const options = { mayCreate: isNew, readPayload: () => item.payload }
    const groupId = groups.findOrCreate(queueRow, item, seenAt, options)
    if (groupId === undefined) return undefined
    stored = { ...item, groupId }
    if (item.key !== null) keyRun = keyRuns.allocate()
  }
  if (database.run(chooseInsert(item), ...toItemValues(queueRow, stored, keyRun)) === 0) return undefined
  countChanges.enter(queueRow.id, stored)
  return stored
}

function chooseInsert({ origin, sourceId }: Item): string {
  if (origin === null) return sourceId === null ? insertSql : insertOnceSql
  return sourceId === null ? insertLetterSql : insertLetterOnceSql
}

/** Campaigns that were created before now do not contain the letter. */
export function recordArrival({ database }: Transaction, queueRow: QueueRow, letter: ItemHead): void {
  database.run(arrivedSql, queueRow.id, letter.partition, letter.id)
}

/** `insertItem` for an item that is new to the store. Returns whether it was stored. */
export function acceptItem(transaction: Transaction, queueRow: QueueRow, item: Item): boolean {
  const stored = insertItem(transaction, queueRow, item)
  if (stored === undefined) return false
  transaction.countChanges.add(queueRow.id, item.partition, 'accepted')
  if (stored.groupId !== null)
    countArrival(transaction, queueRow, stored.groupId, stored.deadLetteredAt ?? stored.createdAt)
  return true
}

const payloadSql = 'select payload from items where queue_id = ? and partition = ? and id = ?'

/** The payload of a stored row, for rules of its dead queue. */
export function readRulePayload(
  { database }: Transaction,
  queueRow: QueueRow,
  { partition, id }: ItemHead,
): Uint8Array | undefined {
  const row = database.getArray(payloadSql, queueRow.id, partition, id)
  return row === undefined ? undefined : readBytes(row, 0)
}

/** Counts the arrival of a letter in its group: it died at this time, or failed again. */
export function countArrival(
  { groups, countChanges }: Transaction,
  queueRow: QueueRow,
  groupId: number,
  arrivedAt: Instant,
): void {
  countChanges.letters.addArrival(queueRow.id, groupId, arrivedAt)
  countChanges.letters.noteArrival(groupId, arrivedAt)
  groups.lowerFirstSeen(groupId, arrivedAt)
}

export function hasSource({ database }: Transaction, queueRow: QueueRow, sourceId: string | null): boolean {
  if (sourceId === null) return false
  const sql = 'select 1 from items where queue_id = ? and source_id = ?'
  return database.getArray(sql, queueRow.id, sourceId) !== undefined
}

/** All columns that can change: not the bytes, and not the run of the key. */
const allColumns = itemColumns.filter(
  (column) => !['queue_id', 'partition', 'key', 'headers', 'key_run', 'payload'].includes(column),
)
/**
 * The columns that change when an item keeps its id. SQLite rewrites the entries of every index that has a
 * column of the update, also if its value stays the same; a letter has entries in nine indexes.
 */
const stateColumns = [
  'state',
  'attempts',
  'updated_at',
  'expire_deadline',
  'available_at',
  'lease_holder',
  'lease_deadline',
  'ended_at',
  'due_at',
  'redrives',
  'letter_state',
  'letter_redrives',
  'redrive_at',
  'letter',
] as const

type Column = (typeof itemColumns)[number]
type Update = Readonly<{ sql: string; positions: readonly number[] }>

function createUpdate(columns: readonly Column[]): Update {
  return {
    sql: `update items set ${columns.map((column) => `${column} = ?`).join(', ')}
      where queue_id = ? and partition = ? and id = ?`,
    positions: columns.map((column) => itemColumns.indexOf(column)),
  }
}

const updateAll = createUpdate(allColumns)
const updateState = createUpdate(stateColumns)
const updateFailure = createUpdate([...stateColumns, 'failure', 'history'])
const updateGroup = createUpdate([...stateColumns, 'failure', 'history', 'group_id'])

function chooseUpdate(before: ItemHead, after: ItemHead): Update {
  if (before.id !== after.id || before.deadLetteredAt !== after.deadLetteredAt) return updateAll
  if (before.groupId !== after.groupId) return updateGroup
  return before.failure === after.failure && before.history === after.history ? updateState : updateFailure
}

/** Writes a changed head; the bytes stay. A letter that failed again may change its group. */
export function rewriteRow(
  transaction: Transaction,
  queueRow: QueueRow,
  before: ItemHead,
  after: ItemHead,
): void {
  const { database, groups, countChanges } = transaction
  const hasFailed = isRegrouped(before, after)
  const readPayload = () => readRulePayload(transaction, queueRow, before)
  const stored = hasFailed
    ? { ...after, groupId: groups.findOrCreate(queueRow, after, after.updatedAt, { readPayload }) ?? null }
    : after
  const values = toHeadValues(queueRow, stored)
  const { sql, positions } = chooseUpdate(before, stored)
  const changed = positions.map((position) => values[position] ?? null)
  database.run(sql, ...changed, queueRow.id, before.partition, before.id)
  countChanges.leave(queueRow.id, before)
  countChanges.enter(queueRow.id, stored)
  if (hasFailed && stored.groupId !== null)
    countArrival(transaction, queueRow, stored.groupId, computeFailedAgainAt(after))
}

const deleteSql = 'delete from items where queue_id = ? and partition = ? and id = ?'

export function deleteRow({ database, countChanges }: Transaction, queueRow: QueueRow, item: ItemHead): void {
  database.run(deleteSql, queueRow.id, item.partition, item.id)
  countChanges.leave(queueRow.id, item)
}
