/**
 * Completing as most queues do it: the items are ordinary and nothing is kept of them, so what becomes
 * of an item does not depend on the item, and the database can do it all in one statement.
 */
import { whyNotSettled } from '../../../core/decide-settle.ts'
import { changeByComplete } from '../../../core/plan-transition.ts'
import type { Complete, SettleRefusal, SettleResult } from '../../contract/items.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { int4s, places, texts } from '../connection/encode-arrays.ts'
import { addToCounts } from '../counts/counts.ts'
import type { QueueCache, QueueRow } from '../queues/queue-cache.ts'
import type { StoreContext } from '../store-context.ts'
import type { Transaction } from '../transaction.ts'
import type { RowLocation } from './leased-row-locations.ts'
import { stateCodes, stateNames } from './rows.ts'

const { leased } = stateCodes

/**
 * First looks, without locks, which commands have an item that is not leased: these are refused. Then
 * deletes the items of the others. If one of them changed in between, fewer rows are deleted than were
 * seen, and the statement undoes itself. With a redrive among them nothing is done: its letter must be told. Each item says by itself where it is, because joining items to
 * commands here would compare each with each.
 */
export const completePlain: Statement = {
  name: 'complete-plain',
  text: `with found as materialized (
      select i.command, i.id, t.ctid as place, t.state, t.letter_id
      from unnest($1::int4[], $2::int4[], $3::int4[], $4::text[]) as i(command, queue_id, partition, id)
        left join lateral (
          select f.ctid, f.state, f.letter_id from redrive.items_live f
          where f.queue_id = i.queue_id and f.partition = i.partition and f.id = i.id offset 0
        ) t on true
    ), refused as materialized (
      select distinct command from found where state is distinct from ${leased}
    ), held as materialized (
      select place from found
      where command not in (select command from refused) and not exists (select from found where letter_id is not null)
    ), removed as (
      delete from redrive.items_live t using held h where t.ctid = h.place and t.state = ${leased}
      returning t.queue_id, t.partition, t.created_at, t.lease_deadline
    )
    select null::int4 as command, null::text as id, null::int2 as state, null::int4 as queue_id,
      null::int4 as partition, redrive.expect_rows((select count(*) from removed), (select count(*) from held)) as n,
      null::numeric as created, null::numeric as leased, exists (select from found where letter_id is not null) as is_other
    union all
    select f.command, f.id, f.state, null, null, null, null, null, null
    from found f where f.state is distinct from ${leased}
    union all
    select null, null, null, queue_id, partition, count(*), sum(created_at / 1000), sum(lease_deadline / 1000), null
    from removed group by queue_id, partition`,
}

/**
 * Expects that all of them are leased, as nearly always they are: takes them out in one go, and undoes
 * itself when that were not all. `$7`: the slot of the counts. `isAll`: whether these were the right ones.
 */
function completeWith(name: string, removed: string, isAll: string): Statement {
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
    select redrive.expect_rows(${isAll}, cardinality($5::text[]))`,
    hasRawRows: true,
  }
}

const isKnown = '(select known from asked) = $6::int4'

/** Looks them up, like `locate`. */
export const completeLeased = completeWith(
  'complete-leased',
  `using unnest($3::int4[], $4::int4[], $5::text[]) as i(queue_id, partition, id)
        cross join lateral (
          select f.ctid as place from redrive.items_live f
          where f.queue_id = i.queue_id and f.partition = i.partition and f.id = i.id offset 0
        ) p
      where t.ctid = p.place and ${isKnown}`,
  'coalesce((select sum(n) from sums), 0)::int8',
)

/**
 * Finds them where they were leased, `$8`, unless somebody changed them since. See `Places`. They are asked for and
 * found in the order in which they stand, so what was found is compared as a whole; it is not joined with what was asked for,
 * which would go to each place by itself. When nothing is known of a queue there is no place to go to.
 */
export const completeInPlace = completeWith(
  'complete-in-place',
  `where t.ctid = any (case when ${isKnown} then $8::tid[] end)`,
  `(select case when array_agg(id) = $5::text[] and array_agg(queue_id) = $3::int4[]
      and array_agg(partition) = $4::int4[] then count(*) else -1 end from removed)`,
)

type Asked = Readonly<{ command: Complete; queueRow: QueueRow }>

/** Undefined when it is not that plain, or one statement could not do it: then nothing was done. */
export async function tryCompleteAlone(
  store: StoreContext,
  commands: readonly Complete[],
): Promise<SettleResult[] | undefined> {
  const asked = await store.queueCache.getForEach(store.connections, commands)
  if (!isPlain(asked, store.queueCache)) return undefined
  const queues = [...new Set(asked.map(({ queueRow }) => queueRow))]
  const found = columnsOf(asked)
  const taken = store.cursors.rowLocations.takeAll(found.ids)
  const items = taken === undefined ? found : inOrder(found, taken)
  // When it undoes itself the error is one worth repeating, and the transaction will tell which and why.
  await store.connections.writeStatement(taken !== undefined ? completeInPlace : completeLeased, [
    int4s(queues.map(({ id }) => id)),
    int4s(queues.map(({ version }) => version)),
    int4s(items.queueIds),
    int4s(items.partitions),
    texts(items.ids),
    queues.length,
    store.slots.settle,
    ...(taken === undefined ? [] : [places(taken.sort(ascending))]),
  ])
  return commands.map(settledOf)
}

type Columns = Readonly<{ queueIds: number[]; partitions: number[]; ids: string[] }>

/** By place. Mostly they are so already: completed as they were leased, and leased as they were stored. */
function inOrder(items: Columns, taken: readonly RowLocation[]): Columns {
  if (taken.every((place, index) => index === 0 || place > (taken[index - 1] as RowLocation))) return items
  const order = [...taken.keys()].sort(
    (left, right) => (taken[left] as RowLocation) - (taken[right] as RowLocation),
  )
  return {
    queueIds: order.map((index) => items.queueIds[index] as number),
    partitions: order.map((index) => items.partitions[index] as number),
    ids: order.map((index) => items.ids[index] as string),
  }
}

function ascending(left: number, right: number): number {
  return left - right
}

export async function tryCompletePlain(
  transaction: Transaction,
  commands: readonly Complete[],
): Promise<SettleResult[] | undefined> {
  const asked: Asked[] = []
  for (const command of commands) {
    asked.push({ command, queueRow: await transaction.getWithPartition(command.queue, command.partition) })
  }
  if (!isPlain(asked, transaction.queueCache)) return undefined
  const done = await completeTogether(transaction.connection, asked)
  if (done === undefined) {
    for (const { queueRow } of asked) transaction.queueCache.recordRedrives(queueRow.id)
    return undefined
  }
  const { settled, sums } = done
  for (const row of sums) {
    const [queueId, partition, n] = [row.queue_id, row.partition, row.n] as [number, number, number]
    transaction.tally.add(queueId, partition, 'leased', -n)
    transaction.tally.add(queueId, partition, 'completed', n)
    transaction.tally.addSums(
      queueId,
      partition,
      -BigInt(row.created as string),
      -BigInt(row.leased as string),
    )
  }
  return settled
}

/** An item that is named twice is settled once: who is first matters then. */
function isPlain(asked: readonly Asked[], queueCache: QueueCache): boolean {
  const seen = new Set<string>()
  for (const { command, queueRow } of asked) {
    if (queueRow.isLetterStore || queueRow.queue.keepDoneUs > 0 || queueCache.hasRedrives(queueRow.id))
      return false
    for (const id of command.ids) if (seen.size === seen.add(id).size) return false
  }
  return seen.size > 0
}

async function completeTogether(
  connection: Connection,
  asked: readonly Asked[],
): Promise<{ settled: SettleResult[]; sums: Row[] } | undefined> {
  const items = columnsOf(asked)
  const rows = await connection.query(completePlain, [
    int4s(items.commands),
    int4s(items.queueIds),
    int4s(items.partitions),
    texts(items.ids),
  ])
  if (rows.some((row) => row.is_other === true)) return undefined
  const refusals = new Map<number, Map<string, SettleRefusal['why']>>()
  for (const row of rows) {
    if (row.command === null) continue
    const command = row.command as number
    const why = whyNotSettled(stateNames[row.state as number])
    refusals.set(command, (refusals.get(command) ?? new Map()).set(row.id as string, why))
  }
  const settled = asked.map(({ command }, index): SettleResult => {
    const refused = refusals.get(index)
    if (refused === undefined) return settledOf(command)
    const listed = command.ids.flatMap((id) => {
      const why = refused.get(id)
      return why === undefined ? [] : [{ id, why }]
    })
    return { isSettled: false, refused: listed }
  })
  return { settled, sums: rows.filter((row) => row.queue_id !== null) }
}

/** Which item of which queue and partition each command names, column by column. */
function columnsOf(asked: readonly Asked[]) {
  const columns = {
    commands: [] as number[],
    queueIds: [] as number[],
    partitions: [] as number[],
    ids: [] as string[],
  }
  for (let index = 0; index < asked.length; index++) {
    const { command, queueRow } = asked[index] as Asked
    for (const id of command.ids) {
      columns.commands.push(index)
      columns.queueIds.push(queueRow.id)
      columns.partitions.push(command.partition)
      columns.ids.push(id)
    }
  }
  return columns
}

function settledOf(command: Complete): SettleResult {
  return { isSettled: true, changes: command.ids.map((id) => changeByComplete(command, id)) }
}
