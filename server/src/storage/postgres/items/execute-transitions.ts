import { applyTransition } from '../../../core/apply-transition.ts'
import { deadLetterOf, deadPartition } from '../../../core/dead-letter.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Item, Waiting } from '../../../core/item.ts'
import { killWithoutLetter, type Transition } from '../../../core/transitions.ts'
import type { ItemChange } from '../../contract/items.ts'
import type { Statement } from '../connection/connections.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import { needsGroup, withGroups } from '../letters/groups.ts'
import { findBySource } from '../letters/import-letters.ts'
import { Endings } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { isAt, locate } from './locate-rows.ts'
import { type ColumnName, columnNames, decisiveColumns, encode, parametersOf, type Stored } from './rows.ts'

/** An item that is locked, in a partition that is locked, and what the rules say becomes of it. */
export type Decision = Readonly<{ queueRow: QueueRow; item: Item; transition: Transition; now: Instant }>

const fixed: readonly ColumnName[] = ['queue_id', 'partition', 'source_id', 'origin', 'created_at', 'uuid']
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

export type Rewritten = Readonly<{ before: Item; after: Stored }>
type Moved = Readonly<{ queueRow: QueueRow; item: Item; target: QueueRow; letter: Waiting; at: number }>
/** `letter`: of a redrive that ended with this item, as it is now. */
type Settled = Decision & Readonly<{ letter: Item | undefined }>

const resolved = { outcome: 'resolved' } as const

/** Makes of the items what the rules decided, and says what happened, in the same order. */
export async function executeTransitions(
  transaction: Transaction,
  decided: readonly Decision[],
): Promise<ItemChange[]> {
  const { tally } = transaction
  const decisions = await endRedrivesOf(transaction, decided)
  const targets = await lockDeadPartitions(transaction, decisions)
  const rewritten: Rewritten[] = []
  const removed: Decision[] = []
  const moved: Moved[] = []

  const apply = (decision: Settled, at: number): ItemChange => {
    const { queueRow, item, transition, now, letter } = decision
    const { queue, partition } = item
    const from = { fromId: item.id, fromQueue: queue, fromPartition: partition, cause: transition.cause }
    switch (transition.to) {
      case 'waiting':
      case 'done':
      case 'dead': {
        const nextId = () => transaction.nextIds(queueRow, partition, now, 1)[0] as string
        const after = applyTransition(item, transition, queueRow.queue, now, nextId)
        rewritten.push({ before: item, after: { queueId: queueRow.id, queue: queueRow.queue, item: after } })
        const to = after.state === 'waiting' && after.availableAt !== null ? 'scheduled' : transition.to
        return {
          ...from,
          to,
          id: after.id,
          queue,
          partition,
          failure: transition.to === 'done' ? null : transition.failure,
          ...(transition.to === 'done' && letter !== undefined && resolved),
        }
      }
      case 'remove':
        removed.push(decision)
        tally.leave(queueRow.id, item)
        tally.add(queueRow.id, partition, transition.as)
        return {
          ...from,
          to: 'removed',
          id: null,
          queue,
          partition,
          failure: transition.failure,
          ...(letter !== undefined && resolved),
        }
      case 'return': {
        removed.push(decision)
        tally.leave(queueRow.id, item)
        tally.add(queueRow.id, partition, 'deadLettered')
        const there = letter as Item
        return {
          ...from,
          to: 'returned',
          id: there.id,
          queue: there.queue,
          partition: there.partition,
          failure: transition.failure,
          outcome: 'failed',
        }
      }
      case 'come-back': {
        const to = letter?.state === 'dead' ? 'dead' : 'waiting'
        return { ...from, to, id: item.id, queue, partition, failure: transition.failure, outcome: 'unknown' }
      }
      case 'move': {
        const target = targets.get(transition.deadQueue) as QueueRow
        const place = { queue: target.queue, partition: deadPartition(partition, target.queue) }
        const [id = ''] = transaction.nextIds(target, place.partition, now, 1)
        const chance = transaction.random()
        const made = deadLetterOf(item, transition.failure, { ...place, id, chance }, now)
        moved.push({ queueRow, item, target, letter: made, at })
        return {
          ...from,
          to: 'moved',
          id,
          queue: made.queue,
          partition: made.partition,
          failure: transition.failure,
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

/** What these items' letters are told. An item whose letter is gone, or has another redrive, dies like any other. */
async function endRedrivesOf(transaction: Transaction, decided: readonly Decision[]): Promise<Settled[]> {
  const letterIds = decided.flatMap(({ item, transition }) => {
    if (transition.to === 'come-back') return [item.rootId]
    if (transition.to === 'return') return [transition.letterId]
    return transition.cause === 'complete' && item.letterId !== null ? [item.letterId] : []
  })
  if (letterIds.length === 0) return decided.map((decision) => ({ ...decision, letter: undefined }))
  const endings = await Endings.of(transaction, letterIds)
  const settled = decided.map((decision): Settled => {
    const { item, transition, queueRow, now } = decision
    const number = item.redrives
    if (transition.to === 'come-back') {
      const { failure } = transition
      const ending = { letterId: item.rootId, number: null, outcome: 'unknown', failure, now } as const
      return { ...decision, letter: endings.end(ending) }
    }
    if (transition.to === 'return') {
      const { failure, earlier, letterId, cause } = transition
      const letter = endings.end({ letterId, number, outcome: 'failed', failure, earlier, now })
      if (letter !== undefined) return { ...decision, letter }
      return { ...decision, letter, transition: killWithoutLetter(item, failure, queueRow.queue, cause) }
    }
    if (transition.cause !== 'complete' || item.letterId === null) return { ...decision, letter: undefined }
    const resolved = { letterId: item.letterId, number, outcome: 'resolved', failure: null, now } as const
    return { ...decision, letter: endings.end(resolved) }
  })
  await endings.write()
  return settled
}

/** After the items, and always those of queues that have no dead queue themselves: no circle can close. */
async function lockDeadPartitions(
  transaction: Transaction,
  decisions: readonly Decision[],
): Promise<Map<string, QueueRow>> {
  const targets = new Map<string, QueueRow>()
  const places = new Map<string, { queueRow: QueueRow; partition: number }>()
  for (const { transition, item } of decisions) {
    if (transition.to !== 'move') continue
    const queueRow = await transaction.get(transition.deadQueue)
    targets.set(transition.deadQueue, queueRow)
    const partition = deadPartition(item.partition, queueRow.queue)
    places.set(`${queueRow.id}/${partition}`, { queueRow, partition })
  }
  await transaction.lockPartitions([...places.values()])
  return targets
}

/** And counts them. A letter that failed anew may belong to another group now. */
export async function writeRewritten(
  transaction: Transaction,
  rewritten: readonly Rewritten[],
): Promise<void> {
  if (rewritten.length === 0) return
  const isOther = ({ before, after }: Rewritten) => needsGroup(before, after.item)
  const others = rewritten.filter(isOther)
  const grouped =
    others.length === 0
      ? []
      : await withGroups(
          transaction,
          others.map(({ after }) => after),
          false,
        )
  for (const { queueId, item } of grouped) transaction.tally.failAgain(queueId, item)
  let at = 0
  const afters = rewritten.map((each) => (isOther(each) ? (grouped[at++] as Stored) : each.after))
  for (const [index, { before }] of rewritten.entries()) {
    const { queueId, item } = afters[index] as Stored
    transaction.tally.leave(queueId, before)
    transaction.tally.enter(queueId, item)
  }
  await transaction.connection.query(rewriteItems, [
    texts(rewritten.map(({ before }) => before.id)),
    ...encode(decisiveColumns, afters),
  ])
}

async function writeMoved(
  transaction: Transaction,
  moved: readonly Moved[],
  changes: ItemChange[],
): Promise<void> {
  if (moved.length === 0) return
  const letters = await withGroups(
    transaction,
    moved.map(({ target, letter }) => ({ queueId: target.id, queue: target.queue, item: letter })),
    true,
  )
  const rows = await transaction.connection.query(moveItems, [
    ...placesOf(moved),
    ...encode(decisiveColumns, letters),
  ])
  const entered = new Set(rows.map((row) => row.id as string))
  for (const [index, { queueRow, item, target, letter }] of moved.entries()) {
    transaction.tally.leave(queueRow.id, item)
    transaction.tally.add(queueRow.id, item.partition, 'deadLettered')
    if (!entered.has(letter.id)) continue
    transaction.tally.accept(target.id, (letters[index] as Stored).item)
    transaction.markLetterStore(target)
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

function placesOf(items: readonly Readonly<{ queueRow: QueueRow; item: Item }>[]): Buffer[] {
  return [
    int4s(items.map(({ queueRow }) => queueRow.id)),
    int4s(items.map(({ item }) => item.partition)),
    texts(items.map(({ item }) => item.id)),
  ]
}
