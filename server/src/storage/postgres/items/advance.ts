import type { ItemHead } from '../../../core/items/item.ts'
import { onDue } from '../../../core/items/transitions.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { Advance, AdvanceResult } from '../../contract/items.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { PartitionRef, Transaction } from '../transaction.ts'
import { type Decision, executeTransitions } from './execute-transitions.ts'
import { deleteEnds, firstEnd, type LeaseEnd, peekEnded, toLeaseEnd } from './lease-ends.ts'
import { readHeadColumns, stateCodes, toItemHead } from './rows.ts'

/** Reads, without locks, the partitions with due items: partitions must be locked before items. */
export const peekDue: Statement = {
  name: 'peek-due',
  text: `select q.name, d.partition, sum(d.n)::int4 as n from (
      select t.queue_id, t.partition, 1 as n from redrive.items t
      where t.due_at <= $1 and t.state <> ${stateCodes.leased} order by t.due_at, t.id limit $2
    ) d join redrive.queues q on q.id = d.queue_id group by q.name, d.partition`,
}

const headColumnList = readHeadColumns.map((name) => `t.${name}`).join(', ')

/**
 * Locks due items. Items that are due at the same time are taken in the order in which they were produced.
 * Items that another server has locked are left to it.
 */
export const lockDue: Statement = {
  name: 'lock-due',
  text: `select ${headColumnList} from redrive.items t
    where t.due_at <= $1 and t.state <> ${stateCodes.leased}
      and (t.queue_id::int8 << 32 | t.partition) = any ($3::int8[])
    order by t.due_at, t.id limit $2 for update of t skip locked`,
}

/**
 * Locks items whose lease ended, if it was not settled or extended in the meantime. (`state + 0` keeps the
 * planner from an index that begins with the state: it must find the row by its id.)
 */
export const lockEnded: Statement = {
  name: 'lock-ended',
  text: `select t.* from unnest($1::int4[], $2::int4[], $3::text[]) as e(queue_id, partition, id)
    cross join lateral (
      select ${headColumnList} from redrive.items t
      where t.queue_id = e.queue_id and t.partition = e.partition and t.id = e.id
        and t.state + 0 = ${stateCodes.leased} and t.lease_deadline <= $4 for update skip locked
    ) t`,
}

/** The largest number of batches of leases that one command reads. */
const batchesMax = 100

export async function advance(transaction: Transaction, command: Advance): Promise<AdvanceResult> {
  const { countMax } = command
  const { connection } = transaction
  const now = await transaction.boundByDatabaseClock(command.now)
  const due = (await connection.query(peekDue, [now, countMax + 1])).map(toDuePartition)
  const peeked = (await connection.query(peekEnded, [now, batchesMax])).map(toLeaseEnd)
  if (due.length === 0 && peeked.length === 0) return { changes: [], isMore: false }

  const ended = removeRepeats(peeked.filter(hasItem))
  const partitions = await lockPartitions(transaction, [...due, ...ended])
  const queues = new Map(partitions.map(({ queueRow }) => [queueRow.id, queueRow]))
  const first = ended.slice(0, countMax)
  const locked = [
    ...(due.length === 0 ? [] : await lockDueItems(transaction, partitions, queues, { now, countMax })),
    ...(first.length === 0 ? [] : await lockEndedItems(transaction, first, queues, { now })),
  ]

  // Leases that were not read end later than those that were. Items that are due after them wait for the next
  // command, so that items change in the order of their due times.
  const batches = new Set(peeked.map(({ number }) => number))
  const isAll = batches.size < batchesMax && first.length === ended.length
  const until = isAll ? now : ((first.at(-1) ?? peeked.at(-1))?.deadline ?? now)
  const taken = locked
    .filter(({ dueAt }) => dueAt <= until)
    .sort(compareDue)
    .slice(0, countMax)
  const decisions = taken.map(
    ({ queueRow, item }): Decision => ({
      queueRow,
      item,
      transition: onDue(item, queueRow.queue, now, transaction.random()),
      now,
    }),
  )
  const changes = await executeTransitions(transaction, decisions)
  const finished = findFinishedBatches(peeked, taken)
  if (finished.length > 0) await connection.query(deleteEnds, [encodeInt8s(finished)])
  const found = due.reduce((sum, { count }) => sum + count, ended.length)
  return { changes, isMore: found > countMax || !isAll }
}

/** A partition with due items. `count`: how many, up to the limit of `peekDue`. */
type DuePartition = Readonly<{ queue: string; partition: number; count: number }>

function toDuePartition(row: Row): DuePartition {
  return {
    queue: readText(row, 'name'),
    partition: readNumber(row, 'partition'),
    count: readNumber(row, 'n'),
  }
}

/** A locked item, with the time at which it became due or its lease ended. */
type DueItem = Readonly<{ queueRow: QueueRow; item: ItemHead; dueAt: Instant }>

async function lockPartitions(
  transaction: Transaction,
  found: readonly Readonly<{ queue: string; partition: number }>[],
): Promise<PartitionRef[]> {
  await transaction.load([...new Set(found.map(({ queue }) => queue))])
  const partitions = new Map<string, PartitionRef>()
  for (const { queue, partition } of found) {
    const queueRow = await transaction.get(queue)
    partitions.set(`${queueRow.id}/${partition}`, { queueRow, partition })
  }
  const refs = [...partitions.values()]
  await transaction.lockPartitions(refs)
  return refs
}

async function lockDueItems(
  { connection }: Transaction,
  partitions: readonly PartitionRef[],
  queues: ReadonlyMap<number, QueueRow>,
  { now, countMax }: Pick<Advance, 'now' | 'countMax'>,
): Promise<DueItem[]> {
  const keys = partitions.map(({ queueRow, partition }) => queueRow.id * 2 ** 32 + partition)
  const rows = await connection.query(lockDue, [now, countMax, encodeInt8s(keys)])
  return rows.map((row) => toDueItem(row, queues, readNumber(row, 'due_at')))
}

async function lockEndedItems(
  { connection }: Transaction,
  ends: readonly EndedLease[],
  queues: ReadonlyMap<number, QueueRow>,
  { now }: Pick<Advance, 'now'>,
): Promise<DueItem[]> {
  const rows = await connection.query(lockEnded, [
    encodeInt4s(ends.map(({ queueId }) => queueId)),
    encodeInt4s(ends.map(({ partition }) => partition)),
    encodeTexts(ends.map(({ id }) => id)),
    now,
  ])
  return rows.map((row) => toDueItem(row, queues, readNumber(row, 'lease_deadline')))
}

function toDueItem(row: Row, queues: ReadonlyMap<number, QueueRow>, dueAt: Instant): DueItem {
  const queueRow = queues.get(readNumber(row, 'queue_id')) as QueueRow
  return { queueRow, item: toItemHead(row, queueRow.queue.name), dueAt }
}

type EndedLease = LeaseEnd & Readonly<{ id: string }>

function hasItem(end: LeaseEnd): end is EndedLease {
  return end.id !== null
}

/**
 * Two batches name one item if it was leased twice with the same deadline, or its deadline was moved forward.
 */
function removeRepeats(ends: readonly EndedLease[]): EndedLease[] {
  const seen = new Set<string>()
  return ends.filter(({ queueId, partition, id }) => {
    const sizeBefore = seen.size
    return sizeBefore < seen.add(toItemKey(queueId, partition, id)).size
  })
}

/** Finds the batches of lease ends in which every item has been settled. */
function findFinishedBatches(ends: readonly LeaseEnd[], taken: readonly DueItem[]): number[] {
  const settled = new Set(taken.map(({ queueRow, item }) => toItemKey(queueRow.id, item.partition, item.id)))
  const leftByBatch = new Map<number, number>()
  for (const { number, queueId, partition, id } of ends) {
    const isLeft = id !== null && !settled.has(toItemKey(queueId, partition, id))
    leftByBatch.set(number, (leftByBatch.get(number) ?? 0) + (isLeft ? 1 : 0))
  }
  return [...leftByBatch].filter(([, left]) => left === 0).map(([number]) => number)
}

function toItemKey(queueId: number, partition: number, id: string): string {
  return `${queueId}/${partition}/${id}`
}

function compareDue(left: DueItem, right: DueItem): number {
  return left.dueAt - right.dueAt || (left.item.id < right.item.id ? -1 : 1)
}

const firstDue: Statement = {
  name: 'first-due',
  text: `select t.due_at from redrive.items t where t.due_at is not null and t.state <> ${stateCodes.leased}
    order by t.due_at, t.id limit 1`,
}

export async function readNextDueAt(connections: Connections): Promise<Instant | null> {
  const [[due], [end]] = await Promise.all([connections.read(firstDue), connections.read(firstEnd)])
  const times = [due?.due_at, end?.deadline].filter((time) => typeof time === 'number')
  return times.length === 0 ? null : Math.min(...times)
}
