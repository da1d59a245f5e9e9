import { mapPartition } from '../../../core/dead-letters/dead-letter.ts'
import type { LetterIdRecord } from '../../../core/dead-letters/letter-ids.ts'
import type { ItemHead } from '../../../core/items/item.ts'
import {
  type ItemChange,
  type PlanContext,
  planTransition,
  redriveEndedBy,
  withLetter,
} from '../../../core/items/plan-transition.ts'
import type { Transition } from '../../../core/items/transitions.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { recordLetterIds } from '../letters/letter-ids.ts'
import { RedriveEndings } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { PartitionRef, Transaction } from '../transaction.ts'
import {
  deleteRows,
  type MovedRow,
  moveRows,
  type RemovedRow,
  type RewrittenRow,
  rewriteRows,
} from './write-rows.ts'

/** A locked item in a locked partition, and its transition. */
export type Decision = Readonly<{ queueRow: QueueRow; item: ItemHead; transition: Transition; now: Instant }>

/** `letter`: the letter whose redrive ended with this item, as it is afterwards. */
type DecisionWithLetter = Decision & Readonly<{ letter: ItemHead | undefined }>

/**
 * Plans the transitions (core/items/plan-transition.ts), then writes the rows and counts of all plans, with
 * one statement for each kind of write. Returns the changes in the order of the decisions.
 */
export async function executeTransitions(
  transaction: Transaction,
  decided: readonly Decision[],
): Promise<ItemChange[]> {
  const { countChanges } = transaction
  const decisions = await endDecidedRedrives(transaction, decided)
  const targets = await lockDeadPartitions(transaction, decisions)
  const source = planSource(transaction, targets)
  const rewritten: RewrittenRow[] = []
  const removed: RemovedRow[] = []
  const moved: MovedRow[] = []
  const letterIds: LetterIdRecord[] = []
  const changes = decisions.map((decision, at): ItemChange => {
    const { queueRow, item, transition, letter, now } = decision
    const { id: queueId, queue } = queueRow
    const plan = planTransition(item, transition, { queue, letter, now, ...source })
    if (plan.write === 'rewrite') {
      rewritten.push({ before: item, after: { queueId, queue, item: plan.after } })
      letterIds.push(...plan.letterIds)
    } else if (plan.write !== 'none') countChanges.leave(queueId, item)
    if (plan.total !== null) countChanges.add(queueId, item.partition, plan.total)
    if (plan.write === 'remove') removed.push(decision)
    if (plan.write === 'move') {
      const target = targets.get(plan.letter.queue) as QueueRow
      moved.push({ queueRow, item, target, letter: plan.letter, letterIds: plan.letterIds, at })
    }
    return plan.change
  })
  await rewriteRows(transaction, rewritten)
  await deleteRows(transaction, removed)
  await moveRows(transaction, moved, changes)
  await recordLetterIds(transaction.connection, letterIds)
  return changes
}

function planSource(
  transaction: Transaction,
  targets: ReadonlyMap<string, QueueRow>,
): Pick<PlanContext, 'getDeadQueue' | 'allocateId' | 'random'> {
  const { random } = transaction
  return {
    getDeadQueue: (name) => (targets.get(name) as QueueRow).queue,
    allocateId: (name, partition, now) => {
      const queueRow = targets.get(name) ?? transaction.getLoaded(name)
      return transaction.allocateIds(queueRow as QueueRow, partition, now, 1)[0] as string
    },
    random,
  }
}

/** Ends the redrives that end with these transitions. */
async function endDecidedRedrives(
  transaction: Transaction,
  decided: readonly Decision[],
): Promise<DecisionWithLetter[]> {
  const ended = decided.map(({ item, transition }) => redriveEndedBy(item, transition))
  const letterIds = ended.flatMap((each) => (each === undefined ? [] : [each.letterId]))
  if (letterIds.length === 0) return decided.map((decision) => ({ ...decision, letter: undefined }))
  const endings = await RedriveEndings.lock(transaction, letterIds)
  const decisions = decided.map((decision, index): DecisionWithLetter => {
    const { item, transition, queueRow, now } = decision
    const end = ended[index]
    const letter = end && endings.end({ ...end, now })
    return { ...decision, letter, transition: withLetter(item, transition, queueRow.queue, letter) }
  })
  await endings.write()
  return decisions
}

/**
 * Partitions of dead queues are locked after the items. A dead queue has no dead queue of its own, so no two
 * transactions can wait for each other in a circle.
 */
async function lockDeadPartitions(
  transaction: Transaction,
  decisions: readonly Decision[],
): Promise<Map<string, QueueRow>> {
  const targets = new Map<string, QueueRow>()
  const partitions = new Map<string, PartitionRef>()
  for (const { transition, item } of decisions) {
    if (transition.to !== 'move') continue
    const queueRow = await transaction.get(transition.deadQueue)
    targets.set(transition.deadQueue, queueRow)
    const partition = mapPartition(item.partition, queueRow.queue)
    partitions.set(`${queueRow.id}/${partition}`, { queueRow, partition })
  }
  await transaction.lockPartitions([...partitions.values()])
  return targets
}
