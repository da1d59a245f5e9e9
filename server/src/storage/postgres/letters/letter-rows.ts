/** Finds, locks and rewrites the rows of live letters. */

import { isRegrouped } from '../../../core/dead-letters/letter.ts'
import { findKsuidProblem } from '../../../core/ids/ksuid.ts'
import type { ItemHead } from '../../../core/items/item.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import {
  encode,
  type HeadColumnName,
  printArrayParameters,
  readHeadColumns,
  type StoredHead,
  toItemHead,
} from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { assignGroups, type RowKey } from './groups.ts'

export type FoundLetter = Readonly<{ queueRow: QueueRow; letter: ItemHead }>

/** Locks letters in the order of their UUIDs, like every writer that locks several letters. */
export const lockLetterRows: Statement = {
  name: 'lock-letters',
  text: `select t.* from (select * from unnest($1::uuid[], $2::text[]) as u(uuid, letter_id) order by u.uuid) w
    cross join lateral (
      select ${readHeadColumns.map((name) => `f.${name}`).join(', ')} from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null for update
    ) t`,
}

/** Locks the letters that exist, and returns them by id. */
export async function lockLetters(
  transaction: Transaction,
  letterIds: readonly string[],
): Promise<Map<string, FoundLetter>> {
  const ids = [...new Set(letterIds)].filter(isKsuid)
  if (ids.length === 0) return new Map()
  const rows = await transaction.connection.query(lockLetterRows, [encodeUuids(ids), encodeTexts(ids)])
  const queues = await transaction.getByIds(rows.map((row) => readNumber(row, 'queue_id')))
  const letters = new Map<string, FoundLetter>()
  for (const row of rows) {
    // A queue cannot be deleted while a row of it is locked.
    const queueRow = queues.get(readNumber(row, 'queue_id')) as QueueRow
    const letter = toItemHead(row, queueRow.queue.name)
    letters.set(letter.rootId, { queueRow, letter })
  }
  return letters
}

/**
 * Looks at live letters and at the archive in one statement: between two statements a letter may move from
 * one to the other.
 */
const locateLetters: Statement = {
  name: 'locate-letters',
  text: `select w.letter_id, l.is_live, a.is_archived from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    left join lateral (
      select true as is_live from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null limit 1) l on true
    left join lateral (
      select true as is_archived from redrive.archive f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null
        and f.uuid is not null limit 1) a on true`,
}

/**
 * Finds out why letters are not among the live ones. If one of them became live since `live` was read, the
 * transaction runs again.
 */
export async function locateMissing(
  { connection }: Transaction,
  letterIds: readonly string[],
  live: ReadonlyMap<string, unknown>,
): Promise<(letterId: string) => 'missing' | 'archived'> {
  const ids = [...new Set(letterIds)].filter((id) => !live.has(id) && isKsuid(id))
  if (ids.length === 0) return () => 'missing'
  const rows = await connection.query(locateLetters, [encodeUuids(ids), encodeTexts(ids)])
  const restored = rows.find((row) => row.is_live === true)
  if (restored !== undefined) throw new StaleReadError(`letter ${readText(restored, 'letter_id')}`)
  const archived = new Set(
    rows.filter((row) => row.is_archived === true).map((row) => readText(row, 'letter_id')),
  )
  return (letterId) => (archived.has(letterId) ? 'archived' : 'missing')
}

/** Check an id before it becomes a UUID: the UUID of an invalid id could be that of another letter. */
export function isKsuid(id: string): boolean {
  return findKsuidProblem(id) === undefined
}

/** The columns that change with the state of a letter. */
const stateColumns: readonly HeadColumnName[] = [
  'state',
  'updated_at',
  'available_at',
  'lease_holder',
  'lease_deadline',
  'ended_at',
  'due_at',
  'letter',
  'redrive_at',
]
/** The columns that change when a redrive fails. */
const failureColumns: readonly HeadColumnName[] = [
  ...stateColumns,
  'redrives',
  'failure',
  'history',
  'group_id',
]

function createUpdate(name: string, columns: readonly HeadColumnName[], more = ''): Statement {
  return {
    name,
    text: `update redrive.items_sourced t set ${columns.map((column) => `${column} = a.${column}`).join(', ')} ${more}
      from unnest(${printArrayParameters(['uuid', ...columns], 1)}) as a(uuid, ${columns.join(', ')})
        cross join lateral (
          select f.ctid as location from redrive.items_sourced f where f.uuid = a.uuid offset 0
        ) p
      where t.ctid = p.location`,
  }
}
export const updateStates = createUpdate('update-letter-states', stateColumns)
/** A restored letter arrives again: a campaign that was created before does not contain it. */
export const updateRestored = createUpdate(
  'update-restored-letters',
  stateColumns,
  `, arrival = nextval('redrive.arrivals')`,
)
export const updateFailures = createUpdate('update-letter-failures', failureColumns)

export type ChangedLetter = Readonly<{ queueRow: QueueRow; before: ItemHead; after: ItemHead }>

/** Writes letters that are locked, each of them once, and counts them. */
export async function writeLetters(
  transaction: Transaction,
  changed: readonly ChangedLetter[],
  updateMoved: typeof updateStates | typeof updateRestored = updateStates,
): Promise<void> {
  if (changed.length === 0) return
  const moved: StoredHead[] = []
  const failed: StoredHead[] = []
  const regrouped: StoredHead[] = []
  const regroupedRows: RowKey[] = []
  for (const { queueRow, before, after } of changed) {
    const stored = { queueId: queueRow.id, queue: queueRow.queue, item: after }
    transaction.countChanges.leave(queueRow.id, before)
    if (isRegrouped(before, after)) {
      regrouped.push(stored)
      regroupedRows.push({ queueId: queueRow.id, partition: before.partition, id: before.id })
    } else if (before.retryCount !== after.retryCount) failed.push(stored)
    else moved.push(stored)
  }
  const grouped = await assignGroups(transaction, regrouped, false, regroupedRows)
  for (const { queueId, item } of grouped) transaction.countChanges.failAgain(queueId, item)
  failed.push(...grouped)
  for (const { queueId, item } of [...moved, ...failed]) transaction.countChanges.enter(queueId, item)
  const { connection } = transaction
  if (moved.length > 0) await connection.query(updateMoved, encode(['uuid', ...stateColumns], moved))
  if (failed.length > 0) await connection.query(updateFailures, encode(['uuid', ...failureColumns], failed))
}
