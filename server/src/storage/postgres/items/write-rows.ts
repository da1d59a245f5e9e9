/** Rewrites, deletes and moves rows of `items` that this transaction has locked, in batches. */

import { isRegrouped } from '../../../core/dead-letters/letter.ts'
import type { LetterIdRecord } from '../../../core/dead-letters/letter-ids.ts'
import type { ItemHead, WaitingHead } from '../../../core/items/item.ts'
import type { ItemChange } from '../../../core/items/plan-transition.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { assignGroups } from '../letters/groups.ts'
import { findBySource } from '../letters/import-letters.ts'
import { recordLetterIds } from '../letters/letter-ids.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { ownHeaders, ownPayload } from '../webhooks/jobs.ts'
import { isLocatedRow, locateRows } from './locate-rows.ts'
import {
  type ColumnName,
  columnNames,
  encode,
  type HeadColumnName,
  headColumns,
  isHeadColumn,
  printArrayParameters,
  type StoredHead,
} from './rows.ts'

export type RewrittenRow = Readonly<{ before: ItemHead; after: StoredHead }>
export type RemovedRow = Readonly<{ queueRow: QueueRow; item: ItemHead }>
/** `letter` is inserted into `target`, with its earlier ids. `at`: the index of its change. */
export type MovedRow = RemovedRow &
  Readonly<{ target: QueueRow; letter: WaitingHead; letterIds: readonly LetterIdRecord[]; at: number }>

const fixed: readonly HeadColumnName[] = [
  'queue_id',
  'partition',
  'source_id',
  'origin',
  'created_at',
  'uuid',
]
const changing: readonly HeadColumnName[] = headColumns.filter((name) => !fixed.includes(name))

/** `$1`: the ids before the change. The bytes never change, so they are not written again. */
const rewriteStatement: Statement = {
  name: 'rewrite-items',
  text: `update redrive.items t set ${changing.map((name) => `${name} = a.${name}`).join(', ')}
    from unnest($1::text[], ${printArrayParameters(headColumns, 2)}) as a(before_id, ${headColumns.join(', ')})
      cross join ${locateRows('a', { queueId: 'queue_id', partition: 'partition', id: 'before_id' })} p
    where ${isLocatedRow('t', 'p')}`,
}

/** Also counts the rows. The group of a letter that failed again may change with its failure. */
export async function rewriteRows(transaction: Transaction, rows: readonly RewrittenRow[]): Promise<void> {
  if (rows.length === 0) return
  const needsGroup = ({ before, after }: RewrittenRow) => isRegrouped(before, after.item)
  const needing = rows.filter(needsGroup)
  const grouped =
    needing.length === 0
      ? []
      : await assignGroups(
          transaction,
          needing.map(({ after }) => after),
          false,
          needing.map(({ before: { partition, id }, after }) => ({ queueId: after.queueId, partition, id })),
        )
  for (const { queueId, item } of grouped) transaction.countChanges.failAgain(queueId, item)
  let at = 0
  const afters = rows.map((row) => (needsGroup(row) ? (grouped[at++] as StoredHead) : row.after))
  for (const [index, { before }] of rows.entries()) {
    const { queueId, item } = afters[index] as StoredHead
    transaction.countChanges.leave(queueId, before)
    transaction.countChanges.enter(queueId, item)
  }
  await transaction.connection.query(rewriteStatement, [
    encodeTexts(rows.map(({ before }) => before.id)),
    ...encode(headColumns, afters),
  ])
}

const deleteStatement: Statement = {
  name: 'delete-items',
  text: `delete from redrive.items t using unnest($1::int4[], $2::int4[], $3::text[]) as d(queue_id, partition, id)
      cross join ${locateRows('d')} p
    where ${isLocatedRow('t', 'p')}`,
}

/** The caller counts the rows. */
export async function deleteRows(transaction: Transaction, rows: readonly RemovedRow[]): Promise<void> {
  if (rows.length > 0) await transaction.connection.query(deleteStatement, encodeKeys(rows))
}

function movedColumn(name: ColumnName): string {
  if (name === 'headers') return `${ownHeaders} as headers`
  if (name === 'payload') return `${ownPayload} as payload`
  return isHeadColumn(name) ? `m.${name}` : `t.${name}`
}

/** One statement, so the row that is deleted is exactly the row that is inserted, with its bytes. */
const moveStatement: Statement = {
  name: 'move-items',
  text: `with gone as (
      delete from redrive.items t
      using unnest($1::int4[], $2::int4[], $3::text[], ${printArrayParameters(headColumns, 4)})
        as m(from_queue_id, from_partition, from_id, ${headColumns.join(', ')})
        cross join ${locateRows('m', { queueId: 'from_queue_id', partition: 'from_partition', id: 'from_id' })} p
      where ${isLocatedRow('t', 'p')}
      returning ${columnNames.map(movedColumn).join(', ')}
    )
    insert into redrive.items_sourced (${columnNames.join(', ')}, is_sourced)
    select ${columnNames.join(', ')}, true from gone
    on conflict (queue_id, source_id) where source_id is not null do nothing returning id`,
}

/** Counts the letters in their new queue; the caller counts the rows that leave. */
export async function moveRows(
  transaction: Transaction,
  rows: readonly MovedRow[],
  changes: ItemChange[],
): Promise<void> {
  if (rows.length === 0) return
  const letters = await assignGroups(
    transaction,
    rows.map(({ target, letter }) => ({ queueId: target.id, queue: target.queue, item: letter })),
    true,
    rows.map(({ queueRow, item: { partition, id } }) => ({ queueId: queueRow.id, partition, id })),
  )
  const inserted = await transaction.connection.query(moveStatement, [
    ...encodeKeys(rows),
    ...encode(headColumns, letters),
  ])
  const insertedIds = new Set(inserted.map((row) => readText(row, 'id')))
  for (const [index, { target, letter }] of rows.entries()) {
    if (!insertedIds.has(letter.id)) continue
    transaction.countChanges.accept(target.id, (letters[index] as StoredHead).item)
    transaction.markLetterStore(target)
  }
  const stored = rows.filter(({ letter }) => insertedIds.has(letter.id))
  await recordLetterIds(
    transaction.connection,
    stored.flatMap(({ letterIds }) => letterIds),
  )
  const repeated = rows.filter(({ letter }) => !insertedIds.has(letter.id))
  if (repeated.length > 0) await reportExisting(transaction, repeated, changes)
}

/**
 * Puts existing letters into the changes: an earlier move of these items has inserted them, and there is one
 * letter per death.
 */
async function reportExisting(
  transaction: Transaction,
  rows: readonly MovedRow[],
  changes: ItemChange[],
): Promise<void> {
  const existing = await transaction.connection.query(findBySource, [
    encodeInt4s(rows.map(({ target }) => target.id)),
    encodeTexts(rows.map(({ letter }) => letter.sourceId)),
  ])
  for (const { letter, at } of rows) {
    const row = existing.find((each) => each.source_id === letter.sourceId)
    const change = changes[at]
    if (row === undefined || change === undefined) continue
    changes[at] = { ...change, id: readText(row, 'id'), partition: readNumber(row, 'partition') }
  }
}

function encodeKeys(rows: readonly RemovedRow[]): Buffer[] {
  return [
    encodeInt4s(rows.map(({ queueRow }) => queueRow.id)),
    encodeInt4s(rows.map(({ item }) => item.partition)),
    encodeTexts(rows.map(({ item }) => item.id)),
  ]
}
