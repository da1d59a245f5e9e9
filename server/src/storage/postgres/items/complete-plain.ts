/**
 * Completes plain items, which are most items: leased, no letter and no redrive. The result does not depend
 * on the item, so one statement can complete all of them without reading them: it deletes them, or sets them
 * to done if their queues keep done items.
 */
import { findSettleRefusal } from '../../../core/items/decide-settle.ts'
import { changeByComplete } from '../../../core/items/plan-transition.ts'
import { computeDoneDueAt } from '../../../core/items/transitions.ts'
import type { Complete, SettleRefusal, SettleResult } from '../../contract/items.ts'
import { readNumber, readNumberOrNull, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s, encodeTexts, encodeTids } from '../connection/encode-arrays.ts'
import { addToCounts } from '../counts/counts.ts'
import type { QueueCache, QueueRow } from '../queues/queue-cache.ts'
import type { StoreContext } from '../store-context.ts'
import type { Transaction } from '../transaction.ts'
import type { RowLocation } from './leased-row-locations.ts'
import { decodeState, stateCodes } from './rows.ts'

const { leased, done } = stateCodes

/**
 * Reads the items without locks and refuses the commands that have an item that is not leased. Then deletes
 * the items of the other commands. If one of them changed in between, fewer rows are deleted than were read,
 * and the statement fails and changes nothing. It also changes nothing if one of the items is a redrive,
 * because the letter of a redrive must be changed too.
 *
 * Each item has its own queue and partition in the parameters: a join of items and commands would compare
 * each item with each command. The result has a row with the total, a row for each item that is not leased,
 * and a row with the sums of each partition.
 */
export const completePlain: Statement = {
  name: 'complete-plain',
  text: `with found as materialized (
      select i.command, i.id, t.ctid as location, t.state, t.letter_id
      from unnest($1::int4[], $2::int4[], $3::int4[], $4::text[]) as i(command, queue_id, partition, id)
        left join lateral (
          select f.ctid, f.state, f.letter_id from redrive.items_live f
          where f.queue_id = i.queue_id and f.partition = i.partition and f.id = i.id offset 0
        ) t on true
    ), refused as materialized (
      select distinct command from found where state is distinct from ${leased}
    ), accepted as materialized (
      select location from found
      where command not in (select command from refused) and not exists (select from found where letter_id is not null)
    ), removed as (
      delete from redrive.items_live t using accepted a where t.ctid = a.location and t.state = ${leased}
      returning t.queue_id, t.partition, t.created_at, t.lease_deadline
    )
    select null::int4 as command, null::text as id, null::int2 as state, null::int4 as queue_id,
      null::int4 as partition, redrive.expect_rows((select count(*) from removed), (select count(*) from accepted)) as n,
      null::numeric as created, null::numeric as leased, exists (select from found where letter_id is not null) as has_redrive
    union all
    select f.command, f.id, f.state, null, null, null, null, null, null
    from found f where f.state is distinct from ${leased}
    union all
    select null, null, null, queue_id, partition, count(*), sum(created_at / 1000), sum(lease_deadline / 1000), null
    from removed group by queue_id, partition`,
}

/**
 * The same for queues that keep done items. `$5` and `$6`: when each item ended, and when it leaves. A row
 * that was read and not updated has changed in between, so its columns need not be returned by the update.
 */
export const completeKept: Statement = {
  name: 'complete-kept',
  text: `with found as materialized (
      select i.*, t.ctid as location, t.state, t.letter_id, t.created_at, t.lease_deadline
      from unnest($1::int4[], $2::int4[], $3::int4[], $4::text[], $5::int8[], $6::int8[])
          as i(command, queue_id, partition, id, ended_at, due_at)
        left join lateral (
          select f.ctid, f.state, f.letter_id, f.created_at, f.lease_deadline from redrive.items_live f
          where f.queue_id = i.queue_id and f.partition = i.partition and f.id = i.id offset 0
        ) t on true
    ), refused as materialized (
      select distinct command from found where state is distinct from ${leased}
    ), accepted as materialized (
      select location, queue_id, partition, ended_at, due_at, created_at, lease_deadline from found
      where command not in (select command from refused) and not exists (select from found where letter_id is not null)
    ), kept as (
      update redrive.items_live t set state = ${done}, updated_at = a.ended_at, ended_at = a.ended_at,
        due_at = a.due_at, lease_holder = null, lease_deadline = null
      from accepted a where t.ctid = a.location and t.state = ${leased} returning 1
    )
    select null::int4 as command, null::text as id, null::int2 as state, null::int4 as queue_id,
      null::int4 as partition, redrive.expect_rows((select count(*) from kept), (select count(*) from accepted)) as n,
      null::numeric as created, null::numeric as leased, exists (select from found where letter_id is not null) as has_redrive
    union all
    select f.command, f.id, f.state, null, null, null, null, null, null
    from found f where f.state is distinct from ${leased}
    union all
    select null, null, null, queue_id, partition, count(*), sum(created_at / 1000), sum(lease_deadline / 1000), null
    from accepted group by queue_id, partition`,
}

/**
 * Completes items that are expected to be leased and plain, and fails with nothing changed if one of them is
 * not. `$7` is the slot of the counts. `removedCount` computes the number of removed rows, which must be the
 * number of ids.
 */
function completeWith(name: string, removed: string, removedCount: string): Statement {
  return {
    name,
    text: `with asked as materialized (
      select count(*) as known from unnest($1::int4[], $2::int4[]) as a(queue_id, version)
        join redrive.queues q on q.id = a.queue_id and q.version = a.version
    ), removed as (
      delete from redrive.items_live t ${removed} and t.state = ${leased} and t.letter_id is null
      returning t.queue_id, t.partition, t.id, t.created_at, t.lease_deadline
    ), sums as materialized (
      select queue_id, partition, count(*) as n, sum(created_at / 1000) as created, sum(lease_deadline / 1000) as leased
      from removed group by queue_id, partition
    ), counted as (${addToCounts(
      ['leased', 'completed', 'created_sum_ms', 'lease_sum_ms'],
      'select queue_id, partition, $7::int4, -n, n, -created, -leased from sums order by queue_id, partition',
    )})
    select redrive.expect_rows(${removedCount}, cardinality($5::text[]))`,
    hasRawRows: true,
  }
}

/** Whether all queues still have the version that was cached. */
const areQueuesCurrent = '(select known from asked) = $6::int4'

/** Looks the items up by their ids, like `locateRows`. */
export const completeLeased = completeWith(
  'complete-leased',
  `using unnest($3::int4[], $4::int4[], $5::text[]) as i(queue_id, partition, id)
        cross join lateral (
          select f.ctid as location from redrive.items_live f
          where f.queue_id = i.queue_id and f.partition = i.partition and f.id = i.id offset 0
        ) p
      where t.ctid = p.location and ${areQueuesCurrent}`,
  'coalesce((select sum(n) from sums), 0)::int8',
)

/**
 * Finds the items at the locations `$8` at which they were leased (`RowLocations`). Ids and locations are
 * both sorted by location, and rows are found in that order, so the found rows are compared with the ids as
 * whole arrays. (A join with the ids would visit each location separately.) If a queue has another version,
 * no location is visited.
 */
export const completeInPlace = completeWith(
  'complete-in-place',
  `where t.ctid = any (case when ${areQueuesCurrent} then $8::tid[] end)`,
  `(select case when array_agg(id) = $5::text[] and array_agg(queue_id) = $3::int4[]
      and array_agg(partition) = $4::int4[] then count(*) else -1 end from removed)`,
)

/** A command, and its queue as it was read or cached. */
type CompleteRequest = Readonly<{ command: Complete; queueRow: QueueRow }>

/** Undefined, with nothing changed, if an item or its queue is not plain. */
export async function tryCompleteAlone(
  store: StoreContext,
  commands: readonly Complete[],
): Promise<SettleResult[] | undefined> {
  const requests = await store.queueCache.getForEach(store.connections, commands)
  if (!arePlain(requests, store.queueCache) || requests.some(({ queueRow }) => isKept(queueRow)))
    return undefined
  const queues = [...new Set(requests.map(({ queueRow }) => queueRow))]
  const named = toColumns(requests)
  const locations = store.cursors.rowLocations.takeAll(named.ids)
  const items = locations === undefined ? named : sortByLocation(named, locations)
  // If the statement fails because an item is not leased, its error is retryable: the transaction that
  // follows finds out which item it is.
  await store.connections.writeStatement(locations === undefined ? completeLeased : completeInPlace, [
    encodeInt4s(queues.map(({ id }) => id)),
    encodeInt4s(queues.map(({ version }) => version)),
    encodeInt4s(items.queueIds),
    encodeInt4s(items.partitions),
    encodeTexts(items.ids),
    queues.length,
    store.slots.settle,
    ...(locations === undefined ? [] : [encodeTids(locations.sort((left, right) => left - right))]),
  ])
  return commands.map((command) => toSettled(command, false))
}

/** The items of the commands, column by column. `commands`: the index of each item's command. */
type ItemColumns = Readonly<{ commands: number[]; queueIds: number[]; partitions: number[]; ids: string[] }>
type SortedColumns = Omit<ItemColumns, 'commands'>

/**
 * Most items are already in this order: they are completed as they were leased, and leased as they were
 * stored.
 */
function sortByLocation(items: ItemColumns, locations: readonly RowLocation[]): SortedColumns {
  const isSorted = locations.every((location, index) => index === 0 || location > (locations[index - 1] ?? 0))
  if (isSorted) return items
  const order = [...locations.keys()].sort(
    (left, right) => (locations[left] as RowLocation) - (locations[right] as RowLocation),
  )
  return {
    queueIds: order.map((index) => items.queueIds[index] as number),
    partitions: order.map((index) => items.partitions[index] as number),
    ids: order.map((index) => items.ids[index] as string),
  }
}

/** Undefined, with nothing changed, if an item or its queue is not plain. */
export async function tryCompletePlain(
  transaction: Transaction,
  commands: readonly Complete[],
): Promise<SettleResult[] | undefined> {
  const requests: CompleteRequest[] = []
  for (const command of commands) {
    const queueRow = await transaction.getWithPartition(command.queue, command.partition)
    requests.push({ command, queueRow })
  }
  if (!arePlain(requests, transaction.queueCache)) return undefined
  const areKept = requests.some(({ queueRow }) => isKept(queueRow))
  const { results, sums, hasRedrive } = await completeOrRefuse(transaction.connection, requests)
  if (hasRedrive) {
    for (const { queueRow } of requests) transaction.queueCache.recordRedrives(queueRow.id)
    return undefined
  }
  for (const { queueId, partition, count, createdMs, leaseMs } of sums) {
    transaction.countChanges.add(queueId, partition, 'leased', -count)
    transaction.countChanges.add(queueId, partition, areKept ? 'done' : 'completed', count)
    transaction.countChanges.addSums(queueId, partition, -createdMs, -leaseMs)
  }
  return results
}

function isKept({ queue }: QueueRow): boolean {
  return queue.doneRetentionUs > 0
}

/**
 * Whether no queue can have letters or redrives, all of them keep done items or none does, and no item is
 * named twice: an item is settled by the first command that names it, and refused to the second.
 */
function arePlain(requests: readonly CompleteRequest[], queueCache: QueueCache): boolean {
  const [first] = requests
  const seen = new Set<string>()
  for (const { command, queueRow } of requests) {
    if (queueRow.isLetterStore || queueCache.hasRedrives(queueRow.id)) return false
    if (first !== undefined && isKept(queueRow) !== isKept(first.queueRow)) return false
    for (const id of command.ids) if (seen.size === seen.add(id).size) return false
  }
  return seen.size > 0
}

type Completed = Readonly<{ results: SettleResult[]; sums: CompletedSums[]; hasRedrive: boolean }>

async function completeOrRefuse(
  connection: Connection,
  requests: readonly CompleteRequest[],
): Promise<Completed> {
  const items = toColumns(requests)
  const areKept = requests.some(({ queueRow }) => isKept(queueRow))
  const ofEach = <T>(read: (request: CompleteRequest) => T) =>
    items.commands.map((command) => read(requests[command] as CompleteRequest))
  const rows = await connection.query(areKept ? completeKept : completePlain, [
    encodeInt4s(items.commands),
    encodeInt4s(items.queueIds),
    encodeInt4s(items.partitions),
    encodeTexts(items.ids),
    ...(areKept
      ? [
          encodeInt8s(ofEach(({ command }) => command.now)),
          encodeInt8s(ofEach(({ command, queueRow }) => computeDoneDueAt(command.now, queueRow.queue))),
        ]
      : []),
  ])
  const refusals = new Map<number, Map<string, SettleRefusal['refusal']>>()
  for (const { command, id, refusal } of rows.filter((row) => row.command !== null).map(toRefusal)) {
    refusals.set(command, (refusals.get(command) ?? new Map()).set(id, refusal))
  }
  return {
    results: requests.map(({ command }, index) => toResult(command, refusals.get(index), areKept)),
    sums: rows.filter((row) => row.queue_id !== null).map(toCompletedSums),
    hasRedrive: rows.some((row) => row.has_redrive === true),
  }
}

function toRefusal(row: Row): SettleRefusal & Readonly<{ command: number }> {
  const state = readNumberOrNull(row, 'state')
  return {
    command: readNumber(row, 'command'),
    id: readText(row, 'id'),
    refusal: findSettleRefusal(state === null ? undefined : decodeState(state)),
  }
}

/** The completed items of a partition. */
type CompletedSums = Readonly<{
  queueId: number
  partition: number
  count: number
  createdMs: bigint
  leaseMs: bigint
}>

function toCompletedSums(row: Row): CompletedSums {
  return {
    queueId: readNumber(row, 'queue_id'),
    partition: readNumber(row, 'partition'),
    count: readNumber(row, 'n'),
    createdMs: BigInt(readText(row, 'created')),
    leaseMs: BigInt(readText(row, 'leased')),
  }
}

function toColumns(requests: readonly CompleteRequest[]): ItemColumns {
  const columns: ItemColumns = { commands: [], queueIds: [], partitions: [], ids: [] }
  for (let index = 0; index < requests.length; index++) {
    const { command, queueRow } = requests[index] as CompleteRequest
    for (const id of command.ids) {
      columns.commands.push(index)
      columns.queueIds.push(queueRow.id)
      columns.partitions.push(command.partition)
      columns.ids.push(id)
    }
  }
  return columns
}

function toResult(
  command: Complete,
  refused: ReadonlyMap<string, SettleRefusal['refusal']> | undefined,
  areKept: boolean,
): SettleResult {
  if (refused === undefined) return toSettled(command, areKept)
  const listed = command.ids.flatMap((id) => {
    const refusal = refused.get(id)
    return refusal === undefined ? [] : [{ id, refusal }]
  })
  return { isSettled: false, refused: listed }
}

function toSettled(command: Complete, areKept: boolean): SettleResult {
  return { isSettled: true, changes: command.ids.map((id) => changeByComplete(command, id, areKept)) }
}
