import { discardLetter } from '../../../core/dead-letters/letter.ts'
import { guardedClass } from '../../../core/dead-letters/letter-class.ts'
import { decideRemoval } from '../../../core/dead-letters/letter-decisions.ts'
import { toListedState } from '../../../core/items/item.ts'
import type { Counts } from '../../contract/counts.ts'
import type { Clear, Delete, ListedState } from '../../contract/items.ts'
import { redrivesCounted } from '../../contract/letters.ts'
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
import { readNumber, readNumberOrNull, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { type ChangedLetter, type FoundLetter, lockLetters, writeLetters } from '../letters/letter-rows.ts'
import { deletedColumns, endDeletedRows } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { isLocatedRow, locateRows } from './locate-rows.ts'
import { decodeState, stateCodes } from './rows.ts'

/**
 * The counts of the removed rows, which are in the table `gone`. The database computes them, so that payloads
 * need not travel to be deleted.
 */
export const sumRemovedSql = `select queue_id, partition, state, group_id, least(redrives, ${redrivesCounted}) as redrives,
    case when group_id is not null then died_at / 60000000 end as minute, count(*)::int4 as n,
    coalesce(sum(created_at / 1000), 0) as created, coalesce(sum(lease_deadline / 1000), 0) as leased
  from gone group by 1, 2, 3, 4, 5, 6`

const returning = `returning t.queue_id, t.partition, t.state, t.created_at, t.lease_deadline, t.group_id, t.redrives,
    t.died_at, coalesce(t.root_id, t.id) as letter_id`
/** The columns of a locked row `f`: for `endDeletedRows`, for the step, and the root id if it is a letter. */
const lockedColumnList = `f.id, ${deletedColumns.map((name) => `f.${name}`).join(', ')},
      octet_length(f.payload) as bytes, case when f.origin is not null then coalesce(f.root_id, f.id) end as letter_root_id`

/** Locks items in the order of the given ids. */
export const lockByIds: Statement = {
  name: 'lock-by-ids',
  text: `select $2::int4 as partition, t.* from unnest($3::text[]) as w(id) cross join lateral (
      select ${lockedColumnList} from redrive.items f
      where f.queue_id = $1 and f.partition = $2 and f.id = w.id for update
    ) t`,
}

/**
 * Deletes locked items, and the edited versions and other ids of letters. A separate statement, because it
 * must see the rows in the version that was locked.
 */
export const deleteByIds: Statement = {
  name: 'delete-by-ids',
  text: `with gone as (
      delete from redrive.items t
      using unnest($1::int4[], $2::int4[], $3::text[]) as w(queue_id, partition, id) cross join ${locateRows('w')} p
      where ${isLocatedRow('t', 'p')} ${returning}
    ), edits as (
      delete from redrive.letter_edits e using gone g where g.group_id is not null and e.letter_id = g.letter_id
    ), ids as (
      delete from redrive.letter_ids e using gone g where g.group_id is not null and e.letter_id = g.letter_id
    ) ${sumRemovedSql}`,
}

export async function deleteItems(transaction: Transaction, command: Delete): Promise<Results['delete']> {
  const { connection } = transaction
  const queueRow = await transaction.getWithPartition(command.queue, command.partition)
  const ids = [...new Set(command.ids)].sort()
  const rows = await connection.query(lockByIds, [queueRow.id, command.partition, encodeTexts(ids)])
  const { step, isMore } = takeStep(rows, readBytes, Number.POSITIVE_INFINITY)
  const letters = await lockLetterHeads(transaction, step)
  for (const { letter } of letters.values()) checkNotRedriving(letter)
  const done = await removeLocked(transaction, queueRow, step, letters, command)
  const auditedIds = step.slice(0, idsAuditedMax).map((row) => readText(row, 'id'))
  await insertAudit(connection, createRemovalEntries(command.audit, command.queue, done, { ids: auditedIds }))
  return removeResult(done, isMore ? getLastId(step) : null)
}

/**
 * Locks the items with the lowest ids in these states. Each partition returns its lowest ids, in the order of
 * its index, and the lowest of all of them are taken.
 */
export const lockByState: Statement = {
  name: 'lock-by-state',
  text: `select r.* from unnest($4::int4[]) as p(partition) cross join lateral (
      select f.partition, ${lockedColumnList} from redrive.items f
      where f.queue_id = $1 and f.partition = p.partition and f.state = any ($2::int4[]) and f.id > $5
      order by f.id limit $3 for update of f
    ) r order by r.id limit $3`,
}

export async function clear(transaction: Transaction, command: Clear): Promise<Results['clear']> {
  const queueRow =
    command.partition === undefined
      ? await transaction.get(command.queue)
      : await transaction.getWithPartition(command.queue, command.partition)
  const states = listClearedStates(command)
  if (states.length === 0) return removeResult(nothingRemoved, null)
  if (command.isForced !== true && queueRow.queue.letterClass === guardedClass) {
    checkMayClear(queueRow.queue, await countLetters(transaction, queueRow, states))
  }
  const partitions =
    command.partition === undefined
      ? Array.from({ length: queueRow.queue.partitions }, (_, partition) => partition)
      : [command.partition]
  const rows = await transaction.connection.query(lockByState, [
    queueRow.id,
    encodeStates(states),
    command.countMax,
    encodeInt4s(partitions),
    command.after ?? '',
  ])
  const { step, isMore } = takeStep(rows, readBytes, command.countMax)
  const letters = await lockLetterHeads(transaction, step)
  const done = await removeLocked(transaction, queueRow, step, letters, command)
  await insertAudit(transaction.connection, createRemovalEntries(command.audit, command.queue, done))
  return removeResult(done, isMore ? getLastId(step) : null)
}

function readBytes(row: Row): number {
  return readNumber(row, 'bytes')
}

function getLastId(rows: readonly Row[]): string | null {
  const last = rows.at(-1)
  return last === undefined ? null : readText(last, 'id')
}

const countOpen: Statement = {
  text: `select coalesce(sum(c.n), 0)::int8 as n from redrive.letter_sums c
    where c.queue_id = $1 and c.state = any ($2::int4[])`,
}

/** The number of letters of a queue in these states. */
export async function countLetters(
  transaction: Transaction,
  { id }: QueueRow,
  states: readonly ListedState[],
): Promise<number> {
  await transaction.flushLetters()
  const [row = {}] = await transaction.connection.query(countOpen, [id, encodeStates(states)])
  return readNumber(row, 'n')
}

function encodeStates(states: readonly ListedState[]): Buffer {
  return encodeInt4s(states.map((state) => stateCodes[state]))
}

/** The letters among locked rows, by root id. */
function lockLetterHeads(
  transaction: Transaction,
  locked: readonly Row[],
): Promise<ReadonlyMap<string, FoundLetter>> {
  return lockLetters(
    transaction,
    locked.flatMap((row) => readTextOrNull(row, 'letter_root_id') ?? []),
  )
}

/** `locked`: rows of `lockByIds` or `lockByState`. */
async function removeLocked(
  transaction: Transaction,
  queueRow: QueueRow,
  locked: readonly Row[],
  heads: ReadonlyMap<string, FoundLetter>,
  { now = transaction.now(), audit }: Delete | Clear,
): Promise<Removed> {
  const gone: Row[] = []
  const changed: ChangedLetter[] = []
  const discarded: Removed['discarded'][number][] = []
  for (const row of locked) {
    const found = heads.get(readTextOrNull(row, 'letter_root_id') ?? '')
    const removal = found === undefined ? 'remove' : decideRemoval(found.letter)
    if (removal === 'remove') gone.push(row)
    if (removal !== 'discard' || found === undefined) continue
    const before = found.letter
    changed.push({ queueRow, before, after: discardLetter(before, discardReason(audit), now) })
    discarded.push({ letterId: before.rootId, state: toListedState(before) })
  }
  await writeLetters(transaction, changed)
  const kept = locked.length - gone.length - changed.length
  return { ...(await deleteLocked(transaction, queueRow, gone)), discarded, kept }
}

async function deleteLocked(
  transaction: Transaction,
  queueRow: QueueRow,
  locked: readonly Row[],
): Promise<Pick<Removed, 'removed' | 'letters'>> {
  if (locked.length === 0) return nothingRemoved
  await endDeletedRows(transaction, locked, transaction.now())
  const rows = await transaction.connection.query(deleteByIds, [
    encodeInt4s(locked.map(() => queueRow.id)),
    encodeInt4s(locked.map((row) => readNumber(row, 'partition'))),
    encodeTexts(locked.map((row) => readText(row, 'id'))),
  ])
  const removed = countRemoved(transaction, rows, 'deleted')
  const letters = rows.map(toRemovedCount).filter(({ letter }) => letter !== null)
  return { removed, letters: countLettersByState(letters) }
}

/** Locks the first items of a queue, in the order of their keys. */
export const lockFirst: Statement = {
  name: 'lock-first',
  text: `select f.partition, ${lockedColumnList} from redrive.items f where f.queue_id = $1
    order by f.partition, f.id limit $2 for update of f`,
}

/**
 * Deletes items of a queue that is deleted, open letters too. Undefined: so few are left that none was
 * deleted.
 */
export async function deleteStep(
  transaction: Transaction,
  queueRow: QueueRow,
  countMax: number,
): Promise<Pick<Removed, 'removed' | 'letters'> | undefined> {
  const rows = await transaction.connection.query(lockFirst, [queueRow.id, countMax])
  const { step, isMore } = takeStep(rows, readBytes, countMax)
  return isMore ? deleteLocked(transaction, queueRow, step) : undefined
}

type StateCount = Readonly<{ state: ListedState; count: number }>

/** From a row with the columns `state` and `n`. */
export function toStateCount(row: Row): StateCount {
  return { state: decodeState(row.state), count: readNumber(row, 'n') }
}

export function countLettersByState(counts: readonly StateCount[]): Record<string, number> {
  const letters: Record<string, number> = {}
  for (const { state, count } of counts) letters[state] = (letters[state] ?? 0) + count
  return letters
}

/** The number of removed rows that are equal in all counted columns. */
type RemovedCount = StateCount &
  Readonly<{
    queueId: number
    partition: number
    createdMs: bigint
    leaseMs: bigint
    /** Null for items that are no letters. `minute`: of the death. */
    letter: Readonly<{ groupId: number; retryCount: number; minute: number }> | null
  }>

/** From a row of `sumRemovedSql`. */
function toRemovedCount(row: Row): RemovedCount {
  const groupId = readNumberOrNull(row, 'group_id')
  return {
    ...toStateCount(row),
    queueId: readNumber(row, 'queue_id'),
    partition: readNumber(row, 'partition'),
    createdMs: BigInt(readText(row, 'created')),
    leaseMs: BigInt(readText(row, 'leased')),
    letter:
      groupId === null
        ? null
        : { groupId, retryCount: readNumber(row, 'redrives'), minute: readNumber(row, 'minute') },
  }
}

/**
 * Subtracts the rows of `sumRemovedSql` from the gauges and adds them to a total. Returns the number of
 * removed rows.
 */
export function countRemoved(transaction: Transaction, rows: readonly Row[], total: keyof Counts): number {
  let removed = 0
  for (const row of rows) {
    const { state, count, queueId, partition, createdMs, leaseMs, letter } = toRemovedCount(row)
    transaction.countChanges.add(queueId, partition, state, -count)
    transaction.countChanges.add(queueId, partition, total, count)
    const hasCreatedSum = state === 'waiting' || state === 'leased'
    // An imported item can have a lease deadline without being leased.
    const hasLeaseSum = state === 'leased'
    transaction.countChanges.addSums(
      queueId,
      partition,
      hasCreatedSum ? -createdMs : 0n,
      hasLeaseSum ? -leaseMs : 0n,
    )
    if (letter !== null) {
      const { groupId, retryCount, minute } = letter
      transaction.countChanges.letters.add(queueId, groupId, stateCodes[state], retryCount, minute, -count)
    }
    removed += count
  }
  return removed
}
