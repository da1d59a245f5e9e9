import type { Instant } from '../../../core/instant.ts'
import { onDue } from '../../../core/transitions.ts'
import type { Advance, AdvanceResult } from '../../contract/items.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { PartitionRef, Transaction } from '../transaction.ts'
import { type Decision, executeTransitions } from './execute-transitions.ts'
import { deleteEnds, firstEnd, peekEnded } from './lease-ends.ts'
import { readHeadColumns, stateCodes, toItemHead } from './rows.ts'

/** A look without locks, to know which partitions to lock: partitions come before items. */
export const peekDue: Statement = {
  name: 'peek-due',
  text: `select q.name, d.partition, sum(d.n)::int4 as n from (
      select t.queue_id, t.partition, 1 as n from redrive.items t
      where t.due_at <= $1 and t.state <> ${stateCodes.leased} order by t.due_at, t.id limit $2
    ) d join redrive.queues q on q.id = d.queue_id group by q.name, d.partition`,
}

const decisive = readHeadColumns.map((name) => `t.${name}`).join(', ')

/** Ties by id: what was produced first becomes available first. What another server works on is left to it. */
export const pickDue: Statement = {
  name: 'pick-due',
  text: `select ${decisive} from redrive.items t
    where t.due_at <= $1 and t.state <> ${stateCodes.leased}
      and (t.queue_id::int8 << 32 | t.partition) = any ($3::int8[])
    order by t.due_at, t.id limit $2 for update of t skip locked`,
}

/** Leases that ended, if they still have. (`+ 0`: an index that begins with the state is no way to an id.) */
export const pickEnded: Statement = {
  name: 'pick-ended',
  text: `select t.* from unnest($1::int4[], $2::int4[], $3::text[]) as e(queue_id, partition, id)
    cross join lateral (
      select ${decisive} from redrive.items t
      where t.queue_id = e.queue_id and t.partition = e.partition and t.id = e.id
        and t.state + 0 = ${stateCodes.leased} and t.lease_deadline <= $4 for update skip locked
    ) t`,
}

/** Batches of leases that are looked at in one go. */
const endsMax = 100

export async function advance(transaction: Transaction, command: Advance): Promise<AdvanceResult> {
  const { now, countMax } = command
  const { connection } = transaction
  const due = await connection.query(peekDue, [now, countMax + 1])
  const peeked = await connection.query(peekEnded, [now, endsMax])
  if (due.length === 0 && peeked.length === 0) return { changes: [], isMore: false }

  const ended = eachOnce(peeked.filter((row) => row.id !== null))
  await transaction.load([...new Set([...due, ...ended].map((row) => row.name as string))])
  const places = new Map<string, PartitionRef>()
  const queues = new Map<number, QueueRow>()
  for (const row of [...due, ...ended]) {
    const queueRow = await transaction.get(row.name as string)
    queues.set(queueRow.id, queueRow)
    places.set(`${queueRow.id}/${row.partition}`, { queueRow, partition: row.partition as number })
  }
  await transaction.lockPartitions([...places.values()])

  const rows: Row[] = []
  if (due.length > 0) {
    const keys = [...places.values()].map(({ queueRow, partition }) => queueRow.id * 2 ** 32 + partition)
    rows.push(...(await connection.query(pickDue, [now, countMax, int8s(keys)])))
  }
  const first = ended.slice(0, countMax)
  if (first.length > 0) {
    const wanted = [
      int4s(first.map((row) => row.queue_id as number)),
      int4s(first.map((row) => row.partition as number)),
      texts(first.map((row) => row.id as string)),
    ]
    rows.push(...(await connection.query(pickEnded, [...wanted, now])))
  }
  // Leases that were not looked at yet end later than those that were: what comes after them waits.
  const numbers = new Set(peeked.map((row) => row.number as number))
  const isAll = numbers.size < endsMax && first.length === ended.length
  const until = isAll ? now : ((first.at(-1) ?? peeked.at(-1))?.deadline as number)
  const taken = rows
    .filter((row) => dueAtOf(row) <= until)
    .sort(byDue)
    .slice(0, countMax)
  const decisions = taken.map((row): Decision => {
    const queueRow = queues.get(row.queue_id as number) as QueueRow
    const item = toItemHead(row, queueRow.queue.name)
    return { queueRow, item, transition: onDue(item, queueRow.queue, now), now }
  })
  const changes = await executeTransitions(transaction, decisions)
  const forgotten = endsDone(peeked, taken)
  if (forgotten.length > 0) await connection.query(deleteEnds, [int8s(forgotten)])
  const seen = due.reduce((sum, row) => sum + (row.n as number), ended.length)
  return { changes, isMore: seen > countMax || !isAll }
}

/** Two batches may name an item: leased again with the same end, or its end brought forward. */
function eachOnce(rows: readonly Row[]): Row[] {
  const seen = new Set<string>()
  return rows.filter((row) => seen.size < seen.add(placeOf(row)).size)
}

function placeOf(row: Row): string {
  return `${row.queue_id}/${row.partition}/${row.id}`
}

/** The batches of leases of which nothing is left. */
function endsDone(peeked: readonly Row[], taken: readonly Row[]): number[] {
  const settled = new Set(taken.map(placeOf))
  const left = new Map<number, number>()
  for (const row of peeked) {
    const number = row.number as number
    const isLeft = row.id !== null && !settled.has(placeOf(row))
    left.set(number, (left.get(number) ?? 0) + (isLeft ? 1 : 0))
  }
  return [...left].filter(([, count]) => count === 0).map(([number]) => number)
}

function dueAtOf(row: Row): number {
  return (row.state === stateCodes.leased ? row.lease_deadline : row.due_at) as number
}

function byDue(left: Row, right: Row): number {
  const apart = dueAtOf(left) - dueAtOf(right)
  if (apart !== 0) return apart
  return (left.id as string) < (right.id as string) ? -1 : 1
}

const firstDue: Statement = {
  name: 'first-due',
  text: `select t.due_at from redrive.items t where t.due_at is not null and t.state <> ${stateCodes.leased}
    order by t.due_at, t.id limit 1`,
}

export async function nextDueAt(connections: Connections): Promise<Instant | null> {
  const [[due], [end]] = await Promise.all([connections.read(firstDue), connections.read(firstEnd)])
  const times = [due?.due_at, end?.deadline].filter((time) => typeof time === 'number')
  return times.length === 0 ? null : Math.min(...times)
}
