import { become } from '../../core/become.ts'
import { deadLetterOf, deadPartition } from '../../core/dead-letter.ts'
import type { Instant } from '../../core/instant.ts'
import type { Item, Waiting } from '../../core/item.ts'
import type { Fate } from '../../core/transitions.ts'
import type { Change } from '../storage.ts'
import { int4s, texts } from './arrays.ts'
import type { Statement } from './connections.ts'
import { isAt, locate } from './locate.ts'
import type { KnownQueue } from './queues.ts'
import { type ColumnName, columnNames, decisiveColumns, encode, parametersOf, type Stored } from './rows.ts'
import type { Transaction } from './transaction.ts'

/** An item that is locked, in a partition that is locked, and what the rules say becomes of it. */
export type Decision = Readonly<{ known: KnownQueue; item: Item; fate: Fate; now: Instant }>

const fixed: readonly ColumnName[] = ['queue_id', 'partition', 'source_id', 'origin', 'created_at']
const changing: readonly ColumnName[] = decisiveColumns.filter((name) => !fixed.includes(name))

/** `$1`: the ids before, which may change. The bytes are not written again: they never do. */
const rewriteItems: Statement = {
  name: 'rewrite-items',
  text: `update redrive.items t set ${changing.map((name) => `${name} = a.${name}`).join(', ')}
    from unnest($1::text[], ${parametersOf(decisiveColumns, 2)}) as a(before_id, ${decisiveColumns.join(', ')})
      cross join ${locate('a', { queueId: 'queue_id', partition: 'partition', id: 'before_id' })} p
    where ${isAt('t', 'p')}`,
}

const deleteItems: Statement = {
  name: 'delete-items',
  text: `delete from redrive.items t using unnest($1::int4[], $2::int4[], $3::text[]) as d(queue_id, partition, id)
      cross join ${locate('d')} p
    where ${isAt('t', 'p')}`,
}

/** One statement: what leaves the one queue is what enters the other, bytes included. */
const moveItems: Statement = {
  name: 'move-items',
  text: `with gone as (
      delete from redrive.items t
      using unnest($1::int4[], $2::int4[], $3::text[], ${parametersOf(decisiveColumns, 4)})
        as m(from_queue_id, from_partition, from_id, ${decisiveColumns.join(', ')})
        cross join ${locate('m', { queueId: 'from_queue_id', partition: 'from_partition', id: 'from_id' })} p
      where ${isAt('t', 'p')}
      returning ${columnNames.map((name) => `${decisiveColumns.includes(name) ? 'm' : 't'}.${name}`).join(', ')}
    )
    insert into redrive.items_sourced (${columnNames.join(', ')}, is_sourced)
    select ${columnNames.join(', ')}, true from gone
    on conflict (queue_id, source_id) where source_id is not null do nothing returning id`,
}

const findBySource: Statement = {
  name: 'find-by-source',
  text: `select t.partition, t.id, t.source_id from unnest($1::int4[], $2::text[]) as w(queue_id, source_id)
    cross join lateral (
      select f.partition, f.id, f.source_id from redrive.items_sourced f
      where f.queue_id = w.queue_id and f.source_id = w.source_id and f.source_id is not null offset 0) t`,
}

export type Rewritten = Readonly<{ before: Item; after: Stored }>
type Moved = Readonly<{ known: KnownQueue; item: Item; target: KnownQueue; letter: Waiting; at: number }>

/** Makes of the items what the rules decided, and says what happened, in the same order. */
export async function applyFates(
  transaction: Transaction,
  decisions: readonly Decision[],
): Promise<Change[]> {
  const { tally } = transaction
  const targets = await lockDeadPartitions(transaction, decisions)
  const rewritten: Rewritten[] = []
  const removed: Decision[] = []
  const moved: Moved[] = []

  const apply = (decision: Decision, at: number): Change => {
    const { known, item, fate, now } = decision
    const { queue, partition } = item
    const from = { fromId: item.id, fromQueue: queue, fromPartition: partition, because: fate.because }
    switch (fate.to) {
      case 'waiting':
      case 'done':
      case 'dead': {
        const nextId = () => transaction.nextIds(known, partition, now, 1)[0] as string
        const after = become(item, fate, known.queue, now, nextId)
        rewritten.push({ before: item, after: { queueId: known.id, queue: known.queue, item: after } })
        tally.leave(known.id, item)
        tally.enter(known.id, after)
        const to = after.state === 'waiting' && after.availableAt !== null ? 'scheduled' : after.state
        return {
          ...from,
          to,
          id: after.id,
          queue,
          partition,
          failure: fate.to === 'done' ? null : fate.failure,
        }
      }
      case 'remove':
        removed.push(decision)
        tally.leave(known.id, item)
        tally.add(known.id, partition, fate.as)
        return { ...from, to: 'removed', id: null, queue, partition, failure: fate.failure }
      case 'move': {
        const target = targets.get(fate.deadQueue) as KnownQueue
        const place = { queue: target.queue, partition: deadPartition(partition, target.queue) }
        const [id = ''] = transaction.nextIds(target, place.partition, now, 1)
        const letter = deadLetterOf(item, fate.failure, { ...place, id }, now)
        moved.push({ known, item, target, letter, at })
        return {
          ...from,
          to: 'moved',
          id,
          queue: letter.queue,
          partition: letter.partition,
          failure: fate.failure,
        }
      }
    }
  }
  const changes = decisions.map(apply)

  await writeRewritten(transaction, rewritten)
  if (removed.length > 0) await transaction.connection.query(deleteItems, placesOf(removed))
  await writeMoved(transaction, moved, changes)
  return changes
}

/** After the items, and always those of queues that have no dead queue themselves: no circle can close. */
async function lockDeadPartitions(
  transaction: Transaction,
  decisions: readonly Decision[],
): Promise<Map<string, KnownQueue>> {
  const targets = new Map<string, KnownQueue>()
  const places = new Map<string, { known: KnownQueue; partition: number }>()
  for (const { fate, item } of decisions) {
    if (fate.to !== 'move') continue
    const known = await transaction.get(fate.deadQueue)
    targets.set(fate.deadQueue, known)
    const partition = deadPartition(item.partition, known.queue)
    places.set(`${known.id}/${partition}`, { known, partition })
  }
  await transaction.lockPartitions([...places.values()])
  return targets
}

export async function writeRewritten(
  transaction: Transaction,
  rewritten: readonly Rewritten[],
): Promise<void> {
  if (rewritten.length === 0) return
  await transaction.connection.query(rewriteItems, [
    texts(rewritten.map(({ before }) => before.id)),
    ...encode(
      decisiveColumns,
      rewritten.map(({ after }) => after),
    ),
  ])
}

async function writeMoved(
  transaction: Transaction,
  moved: readonly Moved[],
  changes: Change[],
): Promise<void> {
  if (moved.length === 0) return
  const letters = moved.map(({ target, letter }) => ({
    queueId: target.id,
    queue: target.queue,
    item: letter,
  }))
  const rows = await transaction.connection.query(moveItems, [
    ...placesOf(moved),
    ...encode(decisiveColumns, letters),
  ])
  const entered = new Set(rows.map((row) => row.id as string))
  for (const { known, item, target, letter } of moved) {
    transaction.tally.leave(known.id, item)
    transaction.tally.add(known.id, item.partition, 'deadLettered')
    if (!entered.has(letter.id)) continue
    transaction.tally.enter(target.id, letter)
    transaction.tally.add(target.id, letter.partition, 'accepted')
    transaction.markSourced(target)
  }
  // Where the letter was there already, an earlier move got that far: one dead letter per death.
  const repeated = moved.filter(({ letter }) => !entered.has(letter.id))
  if (repeated.length === 0) return
  const there = await transaction.connection.query(findBySource, [
    int4s(repeated.map(({ target }) => target.id)),
    texts(repeated.map(({ letter }) => letter.sourceId)),
  ])
  for (const { letter, at } of repeated) {
    const row = there.find((each) => each.source_id === letter.sourceId)
    const change = changes[at]
    if (row === undefined || change === undefined) continue
    changes[at] = { ...change, id: row.id as string, partition: row.partition as number }
  }
}

function placesOf(items: readonly Readonly<{ known: KnownQueue; item: Item }>[]): Buffer[] {
  return [
    int4s(items.map(({ known }) => known.id)),
    int4s(items.map(({ item }) => item.partition)),
    texts(items.map(({ item }) => item.id)),
  ]
}
