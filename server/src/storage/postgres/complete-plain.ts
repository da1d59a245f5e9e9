/**
 * Completing as most queues do it: the items are ordinary and nothing is kept of them, so what becomes
 * of an item does not depend on the item, and the database can do it all in one statement.
 */
import type { Item } from '../../core/item.ts'
import type { Change, Complete, Refusal, Settled } from '../storage.ts'
import { int4s, texts } from './arrays.ts'
import type { Connection, Row, Statement } from './connections.ts'
import { addToCounts } from './counts.ts'
import { Stale } from './errors.ts'
import { checkPartition, type KnownQueue } from './queues.ts'
import { stateCodes } from './rows.ts'
import type { Store } from './store.ts'
import type { Transaction } from './transaction.ts'

const { leased, waiting } = stateCodes

/**
 * First looks, without locks, which commands have an item that is not leased: these are refused. Then
 * deletes the items of the others. If one of them changed in between, fewer rows are deleted than were
 * seen, and the statement undoes itself. `$8`: the slot of the counts, or null when the caller counts.
 */
export const completePlain: Statement = {
  name: 'complete-plain',
  text: `with asked as materialized (
      select a.command, a.queue_id, a.partition
      from unnest($1::int4[], $2::int4[], $3::int4[], $4::int4[]) as a(command, queue_id, version, partition)
        join redrive.queues q on q.id = a.queue_id and q.version = a.version
    ), found as materialized (
      select a.command, i.id, t.ctid as place, t.state
      from unnest($5::int4[], $6::text[]) as i(command, id) join asked a on a.command = i.command
        left join lateral (
          select f.ctid, f.state from redrive.items_live f
          where f.queue_id = a.queue_id and f.partition = a.partition and f.id = i.id offset 0
        ) t on true
      where (select count(*) from asked) = $7::int4
    ), refused as materialized (
      select distinct command from found where state is distinct from ${leased}
    ), held as materialized (select place from found where command not in (select command from refused)
    ), removed as (
      delete from redrive.items_live t using held h where t.ctid = h.place and t.state = ${leased}
      returning t.queue_id, t.partition, t.created_at, t.lease_deadline
    ), sums as materialized (
      select queue_id, partition, count(*) as n, sum(created_at / 1000) as created, sum(lease_deadline / 1000) as leased
      from removed group by queue_id, partition
    ), counted as (${addToCounts(
      ['leased', 'completed', 'created_sum_ms', 'lease_sum_ms'],
      `select queue_id, partition, $8::int4, -n, n, -created, -leased from sums
       where $8::int4 is not null order by queue_id, partition`,
    )})
    select null::int4 as command, null::text as id, null::int2 as state, null::int4 as queue_id,
      null::int4 as partition, redrive.expect_rows((select count(*) from removed), (select count(*) from held)) as n,
      (select count(*) from asked) as created, null::numeric as leased
    union all
    select f.command, f.id, f.state, null, null, null, null, null
    from found f where f.state is distinct from ${leased}
    union all
    select null, null, null, s.queue_id, s.partition, s.n, s.created, s.leased from sums s where $8::int4 is null`,
}

type Asked = Readonly<{ command: Complete; known: KnownQueue }>

/** Undefined when it is not that plain, or one statement could not do it: then nothing was done. */
export async function tryCompleteAlone(
  store: Store,
  commands: readonly Complete[],
): Promise<Settled[] | undefined> {
  const asked: Asked[] = []
  for (const command of commands) {
    const known = await store.book.get(store.connections, command.queue)
    checkPartition(known.queue, command.partition)
    asked.push({ command, known })
  }
  if (!isPlain(asked)) return undefined
  const writer = { query: store.connections.writeAlone.bind(store.connections) }
  try {
    return (await completeTogether(writer, asked, store.slots.settle)).settled
  } catch (error) {
    if (!(error instanceof Stale)) throw error
    for (const { command } of asked) store.book.forget(command.queue)
    return undefined
  }
}

export async function tryCompletePlain(
  transaction: Transaction,
  commands: readonly Complete[],
): Promise<Settled[] | undefined> {
  const asked: Asked[] = []
  for (const command of commands) {
    asked.push({ command, known: await transaction.at(command.queue, command.partition) })
  }
  if (!isPlain(asked)) return undefined
  const { settled, sums } = await completeTogether(transaction.connection, asked, null)
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
function isPlain(asked: readonly Asked[]): boolean {
  const seen = new Set<string>()
  for (const { command, known } of asked) {
    if (known.isSourced || known.queue.keepDoneUs > 0) return false
    for (const id of command.ids) {
      if (seen.size === seen.add(`${known.id}/${command.partition}/${id}`).size) return false
    }
  }
  return seen.size > 0
}

async function completeTogether(
  connection: Pick<Connection, 'query'>,
  asked: readonly Asked[],
  slot: number | null,
): Promise<{ settled: Settled[]; sums: Row[] }> {
  const [head, ...rows] = await connection.query(completePlain, [
    int4s(asked.map((_, index) => index)),
    int4s(asked.map(({ known }) => known.id)),
    int4s(asked.map(({ known }) => known.version)),
    int4s(asked.map(({ command }) => command.partition)),
    int4s(asked.flatMap(({ command }, index) => command.ids.map(() => index))),
    texts(asked.flatMap(({ command }) => command.ids)),
    asked.length,
    slot,
  ])
  if (Number(head?.created) !== asked.length) throw new Stale('a queue')
  const refusals = new Map<number, Map<string, Refusal['why']>>()
  for (const row of rows) {
    if (row.command === null) continue
    const command = row.command as number
    const why = row.state === waiting ? 'not-leased' : 'missing'
    refusals.set(command, (refusals.get(command) ?? new Map()).set(row.id as string, why))
  }
  const settled = asked.map(({ command }, index): Settled => {
    const refused = refusals.get(index)
    if (refused === undefined)
      return { isSettled: true, changes: command.ids.map((id) => removedChange(command, id)) }
    const listed = command.ids.flatMap((id) => {
      const why = refused.get(id)
      return why === undefined ? [] : [{ id, why }]
    })
    return { isSettled: false, refused: listed }
  })
  return { settled, sums: rows.filter((row) => row.queue_id !== null) }
}

function removedChange({ queue, partition }: Complete, fromId: Item['id']): Change {
  const from = { fromId, fromQueue: queue, fromPartition: partition }
  return { ...from, to: 'removed', because: 'complete', id: null, queue, partition, failure: null }
}
