import { later } from '../../../core/instant.ts'
import type { Leased } from '../../../core/item.ts'
import type { LeaseItems } from '../../contract/items.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import { addToCounts } from '../counts/counts.ts'
import { checkPartition, type QueueRow } from '../queues/queue-cache.ts'
import type { StoreContext } from '../store-context.ts'
import type { Transaction } from '../transaction.ts'
import { type LeaseCursors, startOfPartition } from './lease-cursors.ts'
import { encodeLeaseOne, leaseOne } from './lease-one.ts'
import { type LeasedValues, leasedColumns, leasedNames, toLeased } from './leased-row.ts'
import { parseLocation } from './leased-row-locations.ts'
import { stateCodes } from './rows.ts'

/**
 * Picks, leases and counts in one statement, or undoes itself when a queue is no longer as remembered. Rows
 * that another leaser holds are passed over, never waited for. Holders are dealt by the place of the item in the order of its partition. `$9` is the slot
 * of the counts, or null when the caller counts; `$10` and `$11` are where to begin (see `Cursors`).
 */
function leaseFrom(name: string, table: 'items_live' | 'items'): Statement {
  const isSame =
    table === 'items'
      ? 't.queue_id = p.queue_id and t.partition = p.partition and t.id = p.id'
      : 't.ctid = p.place'
  return {
    name,
    text: `with asked as materialized (
        select a.queue_id, a.partition, a.first, a.count, a.after_rank, a.after_id
        from unnest($1::int4[], $2::int4[], $3::int4[], $4::int4[], $5::int4[], $10::int4[], $11::text[])
            as a(queue_id, version, partition, first, count, after_rank, after_id)
          join redrive.queues q on q.id = a.queue_id and q.version = a.version
      ), picked as materialized (
        select a.queue_id, a.partition, r.id, r.place, a.first + r.n as turn
        from asked a cross join lateral (
          select o.id, o.place, row_number() over () as n from (
            select t.id, t.ctid as place from redrive.${table} t
            where t.queue_id = a.queue_id and t.partition = a.partition and t.state = ${stateCodes.waiting}
              and t.available_at is null and t.ended_at is null
              and (-t.priority, t.id) > (a.after_rank, a.after_id)
            order by -t.priority, t.id limit a.count for update skip locked
          ) o
        ) r
        where (select redrive.expect_rows(count(*), cardinality($1::int4[])) from asked) >= 0
      ), leased as (
        update redrive.${table} t
        set state = ${stateCodes.leased}, attempts = t.attempts + 1, lease_holder = ($6::text[])[p.turn],
          lease_deadline = ($7::int8[])[p.turn], updated_at = ($8::int8[])[p.turn]
        from picked p where ${isSame}
        returning p.turn, p.queue_id as of_queue_id, p.partition as of_partition, t.ctid as place,
          ${leasedColumns('t')}
      ), ended as (
        insert into redrive.lease_ends (queue_id, partition, deadline, ids)
        select of_queue_id, of_partition, ($7::int8[])[turn], array_agg(id) from leased group by 1, 2, 3
      ), counted as (${addToCounts(
        ['waiting', 'leased', 'lease_sum_ms'],
        `select of_queue_id, of_partition, $9::int4, -count(*), count(*), sum(($7::int8[])[turn] / 1000) from leased
         where $9::int4 is not null group by of_queue_id, of_partition order by of_queue_id, of_partition`,
      )})
      select l.turn, l.place, ${leasedNames.map((name) => `l.${name}`).join(', ')} from leased l`,
    hasRawRows: true,
  }
}

export const leaseLive = leaseFrom('lease-live', 'items_live')
/** For queues that may hold what came from elsewhere: both partitions, merged in order. */
export const leaseAll = leaseFrom('lease-all', 'items')

/** Undefined when one statement cannot do it: then nothing was leased. */
export async function tryLeaseAlone(
  store: StoreContext,
  commands: readonly LeaseItems[],
): Promise<Leased[][] | undefined> {
  const asked: Asked[] = []
  for (const command of commands) {
    let queueRow = await store.queueCache.get(store.connections, command.queue)
    if (queueRow.queue.isPaused) {
      // It may go on by now, and no statement is sent that would tell.
      store.queueCache.invalidate(command.queue)
      queueRow = await store.queueCache.get(store.connections, command.queue)
    }
    checkPartition(queueRow.queue, command.partition)
    asked.push({ command, queueRow })
  }
  // Letters are counted by group, too: in a transaction.
  if (asked.some(({ queueRow }) => queueRow.isLetterStore)) return undefined
  const writer = { query: store.connections.writeStatement.bind(store.connections) }
  const { cursors } = store
  const begun = new Set(asked.filter(({ command }) => cursors.has(command)))
  const { dropCount } = cursors
  const results = await leaseTogether(writer, asked, store.slots.lease, cursors)
  for (const [index, each] of asked.entries()) {
    const { command, queueRow } = each
    const items = results[index] as Leased[]
    cursors.moveTo(command, items.at(-1), dropCount)
    if (!begun.has(each) || items.length === command.holders.length) continue
    // Fewer than asked for, but not looked for from the start: somewhere before there may be others.
    try {
      const [row] = await store.connections.read(countWaiting, [queueRow.id, command.partition])
      if (Number(row?.waiting) <= 0) continue
      cursors.dropQueue(command.queue)
      const rest = { ...command, holders: command.holders.slice(items.length) }
      const [more = []] = await leaseTogether(
        writer,
        [{ command: rest, queueRow }],
        store.slots.lease,
        cursors,
      )
      results[index] = inOrder([...items, ...more])
    } catch {
      // What was leased is given out. What there is besides, or what is wrong, the next lease will meet.
    }
  }
  return results
}

/** What each holder has, in the order of the queue; who has how many stays as it was dealt. */
function inOrder(items: readonly Leased[]): Leased[] {
  const byHolder = new Map<string, Leased[]>()
  for (const item of items) {
    const held = byHolder.get(item.lease.holder)
    if (held === undefined) byHolder.set(item.lease.holder, [item])
    else held.push(item)
  }
  for (const held of byHolder.values()) {
    held.sort((left, right) => right.priority - left.priority || (left.id < right.id ? -1 : 1))
  }
  return items.map(({ lease }) => byHolder.get(lease.holder)?.shift() as Leased)
}

const countWaiting: Statement = {
  name: 'count-waiting',
  text: `select coalesce(sum(waiting), 0) as waiting from redrive.counts where queue_id = $1 and partition = $2`,
}

export async function lease(transaction: Transaction, commands: readonly LeaseItems[]): Promise<Leased[][]> {
  const asked: Asked[] = []
  for (const command of commands) {
    asked.push({ command, queueRow: await transaction.getWithPartition(command.queue, command.partition) })
  }
  const results = await leaseTogether(transaction.connection, asked, null, undefined)
  for (const [index, items] of results.entries()) {
    const { queueRow } = asked[index] as Asked
    for (const item of items) {
      transaction.tally.leave(queueRow.id, { ...item, state: 'waiting', availableAt: null })
      transaction.tally.enter(queueRow.id, item)
    }
  }
  return results
}

type Asked = Readonly<{ command: LeaseItems; queueRow: QueueRow }>
type Group = { readonly queueRow: QueueRow; readonly partition: number; readonly turns: Turn[] }
type Turn = Readonly<{ holder: string; now: number; to: number }>

async function leaseTogether(
  connection: Pick<Connection, 'query'>,
  asked: readonly Asked[],
  slot: number | null,
  cursors: LeaseCursors | undefined,
): Promise<Leased[][]> {
  const results: Leased[][] = asked.map(() => [])
  const groups = new Map<string, Group>()
  for (const [to, { command, queueRow }] of asked.entries()) {
    if (queueRow.queue.isPaused || command.holders.length === 0) continue
    const key = `${queueRow.id}/${command.partition}`
    let group = groups.get(key)
    if (group === undefined) {
      group = { queueRow, partition: command.partition, turns: [] }
      groups.set(key, group)
    }
    for (const holder of command.holders) group.turns.push({ holder, now: command.now, to })
  }
  // A queue that may hold what came from elsewhere is leased from both tables; the others only from one.
  for (const isAll of [false, true]) {
    const some = [...groups.values()].filter(({ queueRow }) => queueRow.isLetterStore === isAll)
    if (some.length === 0) continue
    const rows = (await query(connection, some, slot, cursors)) as unknown as readonly LeasedValues[]
    const dealt: LeasedValues[] = []
    for (const row of rows) dealt[Number(row[0]) - 1] = row
    let at = 0
    for (const { queueRow, partition, turns } of some) {
      const { name, leaseUs } = queueRow.queue
      for (const { holder, now, to } of turns) {
        const row = dealt[at++]
        if (row === undefined) continue
        const lease = { holder, deadline: later(now, leaseUs) }
        results[to]?.push(toLeased(row, name, partition, now, lease))
        if (!isAll) cursors?.rowLocations.set(row[2], parseLocation(row[1]))
      }
    }
  }
  return results
}

function query(
  connection: Pick<Connection, 'query'>,
  groups: readonly Group[],
  slot: number | null,
  cursors: LeaseCursors | undefined,
): Promise<Row[]> {
  const [first] = groups
  if (first?.queueRow.isLetterStore) return connection.query(leaseAll, parametersOf(groups, slot, cursors))
  const isOne = groups.length === 1 && first !== undefined && isOfOneTime(first)
  if (!isOne) return connection.query(leaseLive, parametersOf(groups, slot, cursors))
  const { queueRow, partition, turns } = first
  const { now } = turns[0] as Turn
  const parameters = encodeLeaseOne({
    queueId: queueRow.id,
    version: queueRow.version,
    partition,
    holders: turns.map(({ holder }) => holder),
    now,
    deadline: later(now, queueRow.queue.leaseUs),
    slot,
    after: cursors?.get({ queue: queueRow.queue.name, partition }) ?? startOfPartition,
  })
  return connection.query(leaseOne, parameters)
}

function isOfOneTime({ turns }: Group): boolean {
  return turns.every(({ now }) => now === turns[0]?.now)
}

function parametersOf(
  groups: readonly Group[],
  slot: number | null,
  cursors: LeaseCursors | undefined,
): unknown[] {
  const after = groups.map(
    ({ queueRow, partition }) => cursors?.get({ queue: queueRow.queue.name, partition }) ?? startOfPartition,
  )
  const turns = groups.flatMap((group) =>
    group.turns.map((turn) => ({ ...turn, leaseUs: group.queueRow.queue.leaseUs })),
  )
  let first = 0
  const firsts = groups.map((group) => {
    const at = first
    first += group.turns.length
    return at
  })
  return [
    int4s(groups.map(({ queueRow }) => queueRow.id)),
    int4s(groups.map(({ queueRow }) => queueRow.version)),
    int4s(groups.map(({ partition }) => partition)),
    int4s(firsts),
    int4s(groups.map((group) => group.turns.length)),
    texts(turns.map((turn) => turn.holder)),
    int8s(turns.map((turn) => later(turn.now, turn.leaseUs))),
    int8s(turns.map((turn) => turn.now)),
    slot,
    int4s(after.map(({ rank }) => rank)),
    texts(after.map(({ id }) => id)),
  ]
}
