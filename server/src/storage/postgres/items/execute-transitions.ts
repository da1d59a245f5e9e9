import { deadPartition } from '../../../core/dead-letter.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Item, Waiting } from '../../../core/item.ts'
import {
  type ItemChange,
  type PlanContext,
  planTransition,
  redriveEndedBy,
  withLetter,
} from '../../../core/plan-transition.ts'
import type { Transition } from '../../../core/transitions.ts'
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
type Planned = Readonly<{ queueRow: QueueRow; item: Item }>
type Moved = Planned & Readonly<{ target: QueueRow; letter: Waiting; at: number }>
/** `letter`: the letter whose redrive ended with this item, as it is afterwards. */
type DecisionWithLetter = Decision & Readonly<{ letter: Item | undefined }>

/**
 * Plans the transitions (core/plan-transition.ts), then writes the rows and counts of all plans, with one
 * statement for each kind of write. Returns the changes in the order of the decisions.
 */
export async function executeTransitions(
  transaction: Transaction,
  decided: readonly Decision[],
): Promise<ItemChange[]> {
  const { tally } = transaction
  const decisions = await endRedrivesOf(transaction, decided)
  const targets = await lockDeadPartitions(transaction, decisions)
  const source = planSource(transaction, targets)
  const rewritten: Rewritten[] = []
  const removed: Planned[] = []
  const moved: Moved[] = []
  const changes = decisions.map((decision, at): ItemChange => {
    const { queueRow, item, transition, letter, now } = decision
    const { id: queueId, queue } = queueRow
    const plan = planTransition(item, transition, { queue, letter, now, ...source })
    if (plan.write === 'rewrite')
      rewritten.push({ before: item, after: { queueId, queue, item: plan.after } })
    else if (plan.write !== 'none') tally.leave(queueId, item)
    if (plan.total !== null) tally.add(queueId, item.partition, plan.total)
    if (plan.write === 'remove') removed.push(decision)
    if (plan.write === 'move') {
      const target = targets.get(plan.letter.queue) as QueueRow
      moved.push({ queueRow, item, target, letter: plan.letter, at })
    }
    return plan.change
  })
  await writeRewritten(transaction, rewritten)
  if (removed.length > 0) await transaction.connection.query(deleteItems, placesOf(removed))
  await writeMoved(transaction, moved, changes)
  return changes
}

function planSource(
  transaction: Transaction,
  targets: ReadonlyMap<string, QueueRow>,
): Pick<PlanContext, 'getDeadQueue' | 'nextId' | 'random'> {
  const { random } = transaction
  return {
    getDeadQueue: (name) => (targets.get(name) as QueueRow).queue,
    nextId: (name, partition, now) => {
      const queueRow = targets.get(name) ?? transaction.peek(name)
      return transaction.nextIds(queueRow as QueueRow, partition, now, 1)[0] as string
    },
    random,
  }
}

/** Ends the redrives that end with these transitions. */
async function endRedrivesOf(
  transaction: Transaction,
  decided: readonly Decision[],
): Promise<DecisionWithLetter[]> {
  const ended = decided.map(({ item, transition }) => redriveEndedBy(item, transition))
  const letterIds = ended.flatMap((each) => (each === undefined ? [] : [each.letterId]))
  if (letterIds.length === 0) return decided.map((decision) => ({ ...decision, letter: undefined }))
  const endings = await Endings.of(transaction, letterIds)
  const decisions = decided.map((decision, index): DecisionWithLetter => {
    const { item, transition, queueRow, now } = decision
    const end = ended[index]
    const letter = end && endings.end({ ...end, now })
    return { ...decision, letter, transition: withLetter(item, transition, queueRow.queue, letter) }
  })
  await endings.write()
  return decisions
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
  for (const [index, { target, letter }] of moved.entries()) {
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
