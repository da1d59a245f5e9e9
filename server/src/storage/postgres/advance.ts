import type { Instant } from '../../core/instant.ts'
import { comeDue } from '../../core/transitions.ts'
import type { Advance, Advanced } from '../storage.ts'
import { int8s } from './arrays.ts'
import type { Connections, Statement } from './connections.ts'
import { applyFates, type Decision } from './fate.ts'
import type { KnownQueue } from './queues.ts'
import { decisiveColumns, itemOf } from './rows.ts'
import type { PartitionPlace, Transaction } from './transaction.ts'

/** A look without locks, to know which partitions to lock: partitions come before items. */
export const peekDue: Statement = {
  name: 'peek-due',
  text: `select q.name, d.partition, sum(d.n)::int4 as n from (
      select t.queue_id, t.partition, 1 as n from redrive.items t
      where t.due_at <= $1 order by t.due_at, t.id limit $2
    ) d join redrive.queues q on q.id = d.queue_id group by q.name, d.partition`,
}

/** Ties by id: what was produced first becomes available first. What another server works on is left to it. */
export const pickDue: Statement = {
  name: 'pick-due',
  text: `select ${decisiveColumns.map((name) => `t.${name}`).join(', ')} from redrive.items t
    where t.due_at <= $1 and (t.queue_id::int8 << 32 | t.partition) = any ($3::int8[])
    order by t.due_at, t.id limit $2 for update of t skip locked`,
}

export async function advance(transaction: Transaction, command: Advance): Promise<Advanced> {
  const { now, countMax } = command
  const due = await transaction.connection.query(peekDue, [now, countMax + 1])
  if (due.length === 0) return { changes: [], isMore: false }
  await transaction.load([...new Set(due.map((row) => row.name as string))])
  const places: PartitionPlace[] = []
  const queues = new Map<number, KnownQueue>()
  for (const row of due) {
    const known = await transaction.get(row.name as string)
    queues.set(known.id, known)
    places.push({ known, partition: row.partition as number })
  }
  await transaction.lockPartitions(places)
  const rows = await transaction.connection.query(pickDue, [
    now,
    countMax,
    int8s(places.map(({ known, partition }) => known.id * 2 ** 32 + partition)),
  ])
  const decisions = rows.map((row): Decision => {
    const known = queues.get(row.queue_id as number) as KnownQueue
    const item = itemOf(row, known.queue.name)
    return { known, item, fate: comeDue(item, known.queue, now), now }
  })
  const changes = await applyFates(transaction, decisions)
  const seen = due.reduce((sum, row) => sum + (row.n as number), 0)
  return { changes, isMore: seen > countMax }
}

const firstDue: Statement = {
  name: 'first-due',
  text: 'select t.due_at from redrive.items t where t.due_at is not null order by t.due_at, t.id limit 1',
}

export async function nextDueAt(connections: Connections): Promise<Instant | null> {
  const [row] = await connections.read(firstDue)
  return (row?.due_at as number | undefined) ?? null
}
