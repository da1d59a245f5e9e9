/** Letters by what they are queueRow by: found, locked, rewritten. */
import type { ItemHead } from '../../../core/item.ts'
import { findKsuidProblem } from '../../../core/ksuid.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { texts, uuids } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import {
  arrayParameters,
  encode,
  type HeadColumnName,
  readHeadColumns,
  type StoredHead,
  toItemHead,
} from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { needsGroup, withGroups } from './groups.ts'

/** In the order of their UUIDs: whoever locks several letters locks them in this order. */
export const lockLetters: Statement = {
  name: 'lock-letters',
  text: `select t.* from (select * from unnest($1::uuid[], $2::text[]) as u(uuid, letter_id) order by u.uuid) w
    cross join lateral (
      select ${readHeadColumns.map((name) => `f.${name}`).join(', ')} from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null for update
    ) t`,
}

export type HeldLetter = Readonly<{ queueRow: QueueRow; letter: ItemHead }>

/** Those that are there, locked, by root id. */
export async function holdLetters(
  transaction: Transaction,
  letterIds: readonly string[],
): Promise<Map<string, HeldLetter>> {
  const wanted = [...new Set(letterIds)].filter(isId)
  if (wanted.length === 0) return new Map()
  const rows = await transaction.connection.query(lockLetters, [uuids(wanted), texts(wanted)])
  const queues = await transaction.getByIds(rows.map((row) => row.queue_id as number))
  return new Map(
    rows.map((row) => {
      const held = heldOf(row, queues)
      return [held.letter.rootId, held]
    }),
  )
}

/** Both at one instant: between two looks a letter may go from one to the other. */
const findPlaces: Statement = {
  name: 'find-places-of-letters',
  text: `select w.letter_id, l.is_live, a.is_archived from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    left join lateral (
      select true as is_live from redrive.items_sourced f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null limit 1) l on true
    left join lateral (
      select true as is_archived from redrive.archive f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null
        and f.uuid is not null limit 1) a on true`,
}

/** Why letters are not among the live ones. Asked only about those that are not; who came there since is to be looked at again. */
export async function whyNotThere(
  { connection }: Transaction,
  letterIds: readonly string[],
  live: ReadonlyMap<string, unknown>,
): Promise<(letterId: string) => 'missing' | 'archived'> {
  const gone = [...new Set(letterIds)].filter((id) => !live.has(id) && isId(id))
  if (gone.length === 0) return () => 'missing'
  const rows = await connection.query(findPlaces, [uuids(gone), texts(gone)])
  const restored = rows.find(({ is_live }) => is_live === true)
  if (restored !== undefined) throw new StaleReadError(`letter ${restored.letter_id}`)
  const archived = new Set(
    rows.filter(({ is_archived }) => is_archived === true).map((row) => row.letter_id as string),
  )
  return (letterId) => (archived.has(letterId) ? 'archived' : 'missing')
}

export function heldOf(row: Row, queues: ReadonlyMap<number, QueueRow>): HeldLetter {
  const queueRow = queues.get(row.queue_id as number) as QueueRow
  return { queueRow, letter: toItemHead(row, queueRow.queue.name) }
}

/** What is no id is the id of nothing, and its UUID would be another's. */
export function isId(text: string): boolean {
  return findKsuidProblem(text) === undefined
}

/** Where a letter is, and how it stands. Its failure and its history change only when a redrive came back. */
const placeColumns: readonly HeadColumnName[] = [
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
const failureColumns: readonly HeadColumnName[] = [
  ...placeColumns,
  'redrives',
  'failure',
  'history',
  'group_id',
]

function rewrite(name: string, columns: readonly HeadColumnName[]): Statement {
  return {
    name,
    text: `update redrive.items_sourced t set ${columns.map((column) => `${column} = a.${column}`).join(', ')}
      from unnest(${arrayParameters(['uuid', ...columns], 1)}) as a(uuid, ${columns.join(', ')})
        cross join lateral (
          select f.ctid as place from redrive.items_sourced f where f.uuid = a.uuid offset 0
        ) p
      where t.ctid = p.place`,
  }
}
export const placeLetters = rewrite('place-letters', placeColumns)
export const rewriteLetters = rewrite('rewrite-letters', failureColumns)

export type ChangedLetter = Readonly<{ queueRow: QueueRow; before: ItemHead; after: ItemHead }>

/** Writes letters that are locked, each once, and counts them. */
export async function writeLetters(
  transaction: Transaction,
  changed: readonly ChangedLetter[],
): Promise<void> {
  if (changed.length === 0) return
  const placed: StoredHead[] = []
  const failed: StoredHead[] = []
  const regrouped: StoredHead[] = []
  for (const { queueRow, before, after } of changed) {
    const stored = { queueId: queueRow.id, queue: queueRow.queue, item: after }
    transaction.tally.leave(queueRow.id, before)
    if (needsGroup(before, after)) regrouped.push(stored)
    else if (before.redrives !== after.redrives) failed.push(stored)
    else placed.push(stored)
  }
  const grouped = await withGroups(transaction, regrouped, false)
  for (const { queueId, item } of grouped) transaction.tally.failAgain(queueId, item)
  failed.push(...grouped)
  for (const { queueId, item } of [...placed, ...failed]) transaction.tally.enter(queueId, item)
  const { connection } = transaction
  if (placed.length > 0) await connection.query(placeLetters, encode(['uuid', ...placeColumns], placed))
  if (failed.length > 0) await connection.query(rewriteLetters, encode(['uuid', ...failureColumns], failed))
}
