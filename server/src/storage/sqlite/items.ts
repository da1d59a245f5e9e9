/** The three ways in which a row of `items` changes as a whole, each with its counts. */
import type { Item } from '../../core/item.ts'
import type { KnownQueue } from './queues.ts'
import { itemColumnList, itemColumns, itemValues } from './rows.ts'
import type { Transaction } from './transaction.ts'

const insertSql = `insert into items (${itemColumnList}) values (${itemColumns.map(() => '?').join(', ')})`
const insertOnceSql = `${insertSql} on conflict (queue_id, source_id) where source_id is not null do nothing`

/** False when its source id is in the queue already: then nothing changed. */
export function insertItem(transaction: Transaction, known: KnownQueue, item: Item): boolean {
  const { database, groups, tally } = transaction
  let stored = item
  if (item.origin !== null) {
    // A group is not made for a letter that is not kept.
    if (!groups.has(known, item) && hasSource(transaction, known, item.sourceId)) return false
    stored = { ...item, groupId: groups.idOf(known, item) }
  }
  const sql = item.sourceId === null ? insertSql : insertOnceSql
  if (database.run(sql, ...itemValues(known, stored)) === 0) return false
  tally.enter(known.id, stored)
  return true
}

/** `insertItem` for what was not here before. */
export function acceptItem(transaction: Transaction, known: KnownQueue, item: Item): boolean {
  if (!insertItem(transaction, known, item)) return false
  const { groups, tally } = transaction
  tally.add(known.id, item.partition, 'accepted')
  if (item.origin !== null) {
    tally.letters.arrive(known.id, groups.idOf(known, item), item.diedAt ?? item.createdAt)
  }
  return true
}

export function hasSource({ database }: Transaction, known: KnownQueue, sourceId: string | null): boolean {
  if (sourceId === null) return false
  const sql = 'select 1 from items where queue_id = ? and source_id = ?'
  return database.array(sql, known.id, sourceId) !== undefined
}

/** The payload, the key and the headers are not written again: they never change. */
const changing = itemColumns.filter(
  (column) => !['queue_id', 'partition', 'key', 'headers', 'payload'].includes(column),
)
const rewriteSql = `update items set ${changing.map((column) => `${column} = ?`).join(', ')}
  where queue_id = ? and partition = ? and id = ?`
const changingPlaces = changing.map((column) => itemColumns.indexOf(column))

/** A letter whose failure is another one now belongs to another group. */
export function rewrite(
  { database, groups, tally }: Transaction,
  known: KnownQueue,
  before: Item,
  after: Item,
): void {
  const isRegrouped = after.origin !== null && after.failure !== before.failure
  const stored = isRegrouped ? { ...after, groupId: groups.idOf(known, after) } : after
  const values = itemValues(known, stored)
  const changed = changingPlaces.map((place) => values[place] ?? null)
  database.run(rewriteSql, ...changed, known.id, before.partition, before.id)
  tally.leave(known.id, before)
  tally.enter(known.id, stored)
}

const deleteSql = 'delete from items where queue_id = ? and partition = ? and id = ?'

export function remove({ database, tally }: Transaction, known: KnownQueue, item: Item): void {
  database.run(deleteSql, known.id, item.partition, item.id)
  tally.leave(known.id, item)
}

/** What is large is not needed to decide about an item. */
export const lightColumnList = itemColumnList
  .replace(', payload', ", x'' as payload")
  .replace(', key, headers', ', null as key, null as headers')
