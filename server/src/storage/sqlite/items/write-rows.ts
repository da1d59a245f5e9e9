/** The three ways in which a row of `items` changes as a whole, each with its counts. */
import type { Instant } from '../../../core/instant.ts'
import type { Item } from '../../../core/item.ts'
import { failedAgainAt } from '../../../core/letter.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { itemColumnList, itemColumns, itemValues } from './rows.ts'

const insertSql = `insert into items (${itemColumnList}) values (${itemColumns.map(() => '?').join(', ')})`
const insertOnceSql = `${insertSql} on conflict (queue_id, source_id) where source_id is not null do nothing`

/** The item as stored; undefined when its source id is in the queue already: then nothing changed. */
export function insertItem(transaction: Transaction, queueRow: QueueRow, item: Item): Item | undefined {
  const { database, groups, keyRuns, tally } = transaction
  let stored = item
  let keyRun: number | null = null
  if (item.origin !== null) {
    // A group is not made for a letter that is not kept.
    const seenAt = item.diedAt ?? item.createdAt
    const groupId = groups.findOrCreate(
      queueRow,
      item,
      seenAt,
      () => !hasSource(transaction, queueRow, item.sourceId),
    )
    if (groupId === undefined) return undefined
    stored = { ...item, groupId }
    if (item.key !== null) keyRun = keyRuns.next()
  }
  const sql = item.sourceId === null ? insertSql : insertOnceSql
  if (database.run(sql, ...itemValues(queueRow, stored, keyRun)) === 0) return undefined
  tally.enter(queueRow.id, stored)
  return stored
}

/** `insertItem` for what was not here before. */
export function acceptItem(transaction: Transaction, queueRow: QueueRow, item: Item): boolean {
  const stored = insertItem(transaction, queueRow, item)
  if (stored === undefined) return false
  transaction.tally.add(queueRow.id, item.partition, 'accepted')
  if (stored.groupId !== null)
    arrive(transaction, queueRow, stored.groupId, stored.diedAt ?? stored.createdAt)
  return true
}

/** The group got a letter: it died then, or failed anew. */
export function arrive(
  { groups, tally }: Transaction,
  queueRow: QueueRow,
  groupId: number,
  at: Instant,
): void {
  tally.letters.arrive(queueRow.id, groupId, at)
  groups.lowerFirstSeen(groupId, at)
}

export function hasSource({ database }: Transaction, queueRow: QueueRow, sourceId: string | null): boolean {
  if (sourceId === null) return false
  const sql = 'select 1 from items where queue_id = ? and source_id = ?'
  return database.array(sql, queueRow.id, sourceId) !== undefined
}

/** The payload, the key with its run and the headers are not written again: they never change. */
const all = itemColumns.filter(
  (column) => !['queue_id', 'partition', 'key', 'headers', 'key_run', 'payload'].includes(column),
)
/**
 * What changes of an item that keeps its id. SQLite writes the entries of every index that names a column of an
 * update, also when its value stays: of a letter that would be nine of them.
 */
const inPlace = [
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
type Rewrite = Readonly<{ sql: string; places: readonly number[] }>

function rewriteOf(columns: readonly Column[]): Rewrite {
  return {
    sql: `update items set ${columns.map((column) => `${column} = ?`).join(', ')}
      where queue_id = ? and partition = ? and id = ?`,
    places: columns.map((column) => itemColumns.indexOf(column)),
  }
}

const whole = rewriteOf(all)
const kept = rewriteOf(inPlace)
const failed = rewriteOf([...inPlace, 'failure', 'history'])
const regrouped = rewriteOf([...inPlace, 'failure', 'history', 'group_id'])

function rewriteFor(before: Item, after: Item): Rewrite {
  if (before.id !== after.id || before.diedAt !== after.diedAt) return whole
  if (before.groupId !== after.groupId) return regrouped
  return before.failure === after.failure && before.history === after.history ? kept : failed
}

/** A letter that failed anew may belong to another group; whichever it is has been seen again. */
export function rewrite(transaction: Transaction, queueRow: QueueRow, before: Item, after: Item): void {
  const { database, groups, tally } = transaction
  const hasFailed = after.origin !== null && after.failure !== before.failure
  const stored = hasFailed
    ? { ...after, groupId: groups.findOrCreate(queueRow, after, after.updatedAt) ?? null }
    : after
  const values = itemValues(queueRow, stored)
  const { sql, places } = rewriteFor(before, stored)
  const changed = places.map((place) => values[place] ?? null)
  database.run(sql, ...changed, queueRow.id, before.partition, before.id)
  tally.leave(queueRow.id, before)
  tally.enter(queueRow.id, stored)
  if (hasFailed && stored.groupId !== null)
    arrive(transaction, queueRow, stored.groupId, failedAgainAt(after))
}

const deleteSql = 'delete from items where queue_id = ? and partition = ? and id = ?'

export function remove({ database, tally }: Transaction, queueRow: QueueRow, item: Item): void {
  database.run(deleteSql, queueRow.id, item.partition, item.id)
  tally.leave(queueRow.id, item)
}

/** What is large is not needed to decide about an item. */
export const lightColumnList = itemColumnList
  .replace(', payload', ", x'' as payload")
  .replace(', key, headers', ', null as key, null as headers')
