/**
 * Leases items. Commands that are a write of their own are one statement (`tryLeaseAlone`); in a transaction
 * the same statements are used, and the caller counts.
 */

import type { Leased } from '../../../core/items/item.ts'
import { addDuration } from '../../../core/time/instant.ts'
import type { LeaseItems } from '../../contract/items.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { addToCounts } from '../counts/counts.ts'
import { checkPartition, type QueueRow } from '../queues/queue-cache.ts'
import type { StoreContext } from '../store-context.ts'
import type { Transaction } from '../transaction.ts'
import { type LeaseCursors, type LeasePosition, startOfPartition } from './lease-cursors.ts'
import { encodeLeaseOne, leaseOne } from './lease-one.ts'
import {
  type LeasedValues,
  leasedNames,
  printLeasedColumns,
  readHolderIndex,
  readLocation,
  toLeased,
} from './leased-row.ts'
import { stateCodes } from './rows.ts'

/**
 * Locks, leases and counts items in one statement, which fails if the version of a queue is not the cached
 * one. Rows that another transaction has locked are skipped. The items of a partition go to the holders in
 * the order of the items, up to the item that reaches `stepBytesMax`. `$9` is the slot of the counts, or null
 * if the caller counts; `$10` and `$11` are the positions to start at (`LeaseCursors`).
 */
function leaseFrom(name: string, table: 'items_live' | 'items'): Statement {
  const isLocked =
    table === 'items'
      ? 't.queue_id = p.queue_id and t.partition = p.partition and t.id = p.id'
      : 't.ctid = p.location'
  return {
    name,
    text: `with asked as materialized (
        select a.queue_id, a.partition, a.first, a.count, a.after_rank, a.after_id
        from unnest($1::int4[], $2::int4[], $3::int4[], $4::int4[], $5::int4[], $10::int4[], $11::text[])
            as a(queue_id, version, partition, first, count, after_rank, after_id)
          join redrive.queues q on q.id = a.queue_id and q.version = a.version
      ), picked as materialized (
        select a.queue_id, a.partition, r.id, r.location, a.first + r.n as ordinal
        from asked a cross join lateral (
          select o.id, o.location, row_number() over () as n,
            sum(o.bytes) over (rows unbounded preceding) - o.bytes as before_it
          from (
            select t.id, t.ctid as location, octet_length(t.payload) as bytes from redrive.${table} t
            where t.queue_id = a.queue_id and t.partition = a.partition and t.state = ${stateCodes.waiting}
              and t.available_at is null and t.ended_at is null
              and (-t.priority, t.id) > (a.after_rank, a.after_id)
            order by -t.priority, t.id limit a.count for update skip locked
          ) o
        ) r
        where (select redrive.expect_rows(count(*), cardinality($1::int4[])) from asked) >= 0
          and r.before_it < ${stepBytesMax}
      ), leased as (
        update redrive.${table} t
        set state = ${stateCodes.leased}, attempts = t.attempts + 1, lease_holder = ($6::text[])[p.ordinal],
          lease_deadline = ($7::int8[])[p.ordinal], updated_at = ($8::int8[])[p.ordinal]
        from picked p where ${isLocked}
        returning p.ordinal, p.queue_id as of_queue_id, p.partition as of_partition, t.ctid as location,
          ${printLeasedColumns('t')}
      ), ended as (
        insert into redrive.lease_ends (queue_id, partition, deadline, ids)
        select of_queue_id, of_partition, ($7::int8[])[ordinal], array_agg(id) from leased group by 1, 2, 3
      ), counted as (${addToCounts(
        ['waiting', 'leased', 'lease_sum_ms'],
        `select of_queue_id, of_partition, $9::int4, -count(*), count(*), sum(($7::int8[])[ordinal] / 1000) from leased
         where $9::int4 is not null group by of_queue_id, of_partition order by of_queue_id, of_partition`,
      )})
      select l.ordinal, l.location, ${leasedNames.map((name) => `l.${name}`).join(', ')} from leased l`,
    hasRawRows: true,
  }
}

export const leaseLive = leaseFrom('lease-live', 'items_live')
/** For queues that can have letters: items of both tables, merged in order. */
export const leaseAll = leaseFrom('lease-all', 'items')

/** A command, and its queue as it was read or cached. */
type LeaseRequest = Readonly<{ command: LeaseItems; queueRow: QueueRow }>
type Sender = Pick<Connection, 'query'>

/** Undefined, with nothing leased, if one statement is not enough. */
export async function tryLeaseAlone(
  store: StoreContext,
  commands: readonly LeaseItems[],
): Promise<Leased[][] | undefined> {
  const requests: LeaseRequest[] = []
  for (const command of commands) {
    requests.push({ command, queueRow: await getUnpausedQueue(store, command) })
  }
  // Letters are also counted by group, which needs a transaction.
  if (requests.some(({ queueRow }) => queueRow.isLetterStore)) return undefined
  const sender = { query: store.connections.writeStatement.bind(store.connections) }
  const { cursors } = store
  const { dropCount } = cursors
  const withCursor = new Set(requests.filter(({ command }) => cursors.has(command)))
  const results = await leaseBatch(sender, requests, store.slots.lease, cursors)
  for (const [index, request] of requests.entries()) {
    const items = results[index] as Leased[]
    cursors.moveTo(request.command, items.at(-1), dropCount)
    const isEnough = items.length === request.command.holders.length || reachesBudget(items)
    if (isEnough || !withCursor.has(request)) continue
    // The lease started at a cursor, so there may be items before it.
    results[index] = await leaseFromStart(store, sender, request, items)
  }
  return results
}

/** Whether the bytes of the items ended the statement. */
function reachesBudget(items: readonly Leased[]): boolean {
  let bytes = 0
  for (const { payload } of items) bytes += payload.length
  return bytes >= stepBytesMax
}

/** The queue. A cached queue that is paused is read again: no statement checks whether it is still paused. */
async function getUnpausedQueue(
  { queueCache, connections }: StoreContext,
  { queue, partition }: LeaseItems,
): Promise<QueueRow> {
  let queueRow = await queueCache.get(connections, queue)
  if (queueRow.queue.isPaused) {
    queueCache.invalidate(queue)
    queueRow = await queueCache.get(connections, queue)
  }
  checkPartition(queueRow.queue, partition)
  return queueRow
}

const countWaiting: Statement = {
  name: 'count-waiting',
  text: `select coalesce(sum(waiting), 0)::int8 as waiting from redrive.counts where queue_id = $1 and partition = $2`,
}

/** Leases the missing items from the start of the partition, if the counts show waiting items. */
async function leaseFromStart(
  store: StoreContext,
  sender: Sender,
  { command, queueRow }: LeaseRequest,
  items: Leased[],
): Promise<Leased[]> {
  try {
    const [row = {}] = await store.connections.read(countWaiting, [queueRow.id, command.partition])
    if (readNumber(row, 'waiting') <= 0) return items
    store.cursors.dropQueue(command.queue)
    const rest = { ...command, holders: command.holders.slice(items.length) }
    const [more = []] = await leaseBatch(
      sender,
      [{ command: rest, queueRow }],
      store.slots.lease,
      store.cursors,
    )
    return sortPerHolder([...items, ...more])
  } catch {
    // The first items are leased and must reach their holders. The next lease meets the same error.
    return items
  }
}

/** Sorts the items of each holder in the order of the queue. Each holder keeps its number of items. */
function sortPerHolder(items: readonly Leased[]): Leased[] {
  const byHolder = new Map<string, Leased[]>()
  for (const item of items) {
    const own = byHolder.get(item.lease.holder)
    if (own === undefined) byHolder.set(item.lease.holder, [item])
    else own.push(item)
  }
  for (const own of byHolder.values()) {
    own.sort((left, right) => right.priority - left.priority || (left.id < right.id ? -1 : 1))
  }
  return items.map(({ lease }) => byHolder.get(lease.holder)?.shift() as Leased)
}

export async function lease(transaction: Transaction, commands: readonly LeaseItems[]): Promise<Leased[][]> {
  const requests: LeaseRequest[] = []
  for (const command of commands) {
    const queueRow = await transaction.getWithPartition(command.queue, command.partition)
    requests.push({ command, queueRow })
  }
  const results = await leaseBatch(transaction.connection, requests, null, undefined)
  for (const [index, items] of results.entries()) {
    const { queueRow } = requests[index] as LeaseRequest
    for (const item of items) {
      transaction.countChanges.leave(queueRow.id, { ...item, state: 'waiting', availableAt: null })
      transaction.countChanges.enter(queueRow.id, item)
    }
  }
  return results
}

/** The requests for items of one partition, in the order of the commands. */
type PartitionRequests = {
  readonly queueRow: QueueRow
  readonly partition: number
  readonly items: ItemRequest[]
}
/** A request for one item. `resultIndex`: the command that gets it. */
type ItemRequest = Readonly<{ holder: string; now: number; resultIndex: number }>

/** Returns the items of each request. `slot`: of the counts; null if the caller counts. */
async function leaseBatch(
  sender: Sender,
  requests: readonly LeaseRequest[],
  slot: number | null,
  cursors: LeaseCursors | undefined,
): Promise<Leased[][]> {
  const results: Leased[][] = requests.map(() => [])
  const partitions = groupByPartition(requests)
  // A queue that can have letters is leased from both tables, the other queues only from one.
  for (const isLetterStore of [false, true]) {
    const some = partitions.filter(({ queueRow }) => queueRow.isLetterStore === isLetterStore)
    if (some.length === 0) continue
    const rows = await sendLease(sender, some, slot, cursors)
    assignRows(some, rows, results, isLetterStore ? undefined : cursors)
  }
  return results
}

function groupByPartition(requests: readonly LeaseRequest[]): PartitionRequests[] {
  const partitions = new Map<string, PartitionRequests>()
  for (const [resultIndex, { command, queueRow }] of requests.entries()) {
    const { partition, holders, now } = command
    if (queueRow.queue.isPaused || holders.length === 0) continue
    const key = `${queueRow.id}/${partition}`
    let wanted = partitions.get(key)
    if (wanted === undefined) {
      wanted = { queueRow, partition, items: [] }
      partitions.set(key, wanted)
    }
    for (const holder of holders) wanted.items.push({ holder, now, resultIndex })
  }
  return [...partitions.values()]
}

/** Adds the leased rows to the results of their commands, and records their locations. */
function assignRows(
  partitions: readonly PartitionRequests[],
  rows: readonly LeasedValues[],
  results: readonly Leased[][],
  cursors: LeaseCursors | undefined,
): void {
  const byHolder: LeasedValues[] = []
  for (const row of rows) byHolder[readHolderIndex(row)] = row
  let at = 0
  for (const { queueRow, partition, items } of partitions) {
    const { name, leaseTimeoutUs } = queueRow.queue
    for (const { holder, now, resultIndex } of items) {
      const row = byHolder[at++]
      if (row === undefined) continue
      const item = toLeased(row, name, partition, now, { holder, deadline: addDuration(now, leaseTimeoutUs) })
      results[resultIndex]?.push(item)
      cursors?.rowLocations.set(item.id, readLocation(row))
    }
  }
}

async function sendLease(
  sender: Sender,
  partitions: readonly PartitionRequests[],
  slot: number | null,
  cursors: LeaseCursors | undefined,
): Promise<readonly LeasedValues[]> {
  const [first] = partitions
  const isOne = partitions.length === 1 && first !== undefined && hasOneTime(first)
  const isLetterStore = first?.queueRow.isLetterStore === true
  const rows =
    isOne && !isLetterStore
      ? await sender.query(leaseOne, encodeOne(first, slot, cursors))
      : await sender.query(isLetterStore ? leaseAll : leaseLive, encodeMany(partitions, slot, cursors))
  // The statements have raw rows, whose columns are those of `LeasedValues`.
  return rows as unknown as readonly LeasedValues[]
}

/** Whether all requests have the same time, and so the same deadline. */
function hasOneTime({ items }: PartitionRequests): boolean {
  return items.every(({ now }) => now === items[0]?.now)
}

/** The parameters of `leaseOne`. */
function encodeOne(
  wanted: PartitionRequests,
  slot: number | null,
  cursors: LeaseCursors | undefined,
): unknown[] {
  const { queueRow, partition, items } = wanted
  const { now } = items[0] as ItemRequest
  return encodeLeaseOne({
    queueId: queueRow.id,
    version: queueRow.version,
    partition,
    holders: items.map(({ holder }) => holder),
    now,
    deadline: addDuration(now, queueRow.queue.leaseTimeoutUs),
    slot,
    after: findStart(wanted, cursors),
  })
}

/** The parameters of `leaseLive` and `leaseAll`. */
function encodeMany(
  partitions: readonly PartitionRequests[],
  slot: number | null,
  cursors: LeaseCursors | undefined,
): unknown[] {
  const starts = partitions.map((wanted) => findStart(wanted, cursors))
  const items = partitions.flatMap((wanted) =>
    wanted.items.map((item) => ({ ...item, leaseTimeoutUs: wanted.queueRow.queue.leaseTimeoutUs })),
  )
  let first = 0
  const firsts = partitions.map((wanted) => {
    const at = first
    first += wanted.items.length
    return at
  })
  return [
    encodeInt4s(partitions.map(({ queueRow }) => queueRow.id)),
    encodeInt4s(partitions.map(({ queueRow }) => queueRow.version)),
    encodeInt4s(partitions.map(({ partition }) => partition)),
    encodeInt4s(firsts),
    encodeInt4s(partitions.map((wanted) => wanted.items.length)),
    encodeTexts(items.map(({ holder }) => holder)),
    encodeInt8s(items.map(({ now, leaseTimeoutUs }) => addDuration(now, leaseTimeoutUs))),
    encodeInt8s(items.map(({ now }) => now)),
    slot,
    encodeInt4s(starts.map(({ rank }) => rank)),
    encodeTexts(starts.map(({ id }) => id)),
  ]
}

function findStart(
  { queueRow, partition }: PartitionRequests,
  cursors: LeaseCursors | undefined,
): LeasePosition {
  return cursors?.get({ queue: queueRow.queue.name, partition }) ?? startOfPartition
}
