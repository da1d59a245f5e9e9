import type { LetterIdRecord } from '../../../core/dead-letters/letter-ids.ts'
import { type Item, type ItemHead, type Waiting, withBytes } from '../../../core/items/item.ts'
import {
  type ItemChange,
  planTransition,
  redriveEndedBy,
  withLetter,
} from '../../../core/items/plan-transition.ts'
import type { Transition } from '../../../core/items/transitions.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { recordLetterIds } from '../letters/letter-ids.ts'
import { endLetter, findLetterOfItem } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { readOwnBytes } from '../webhooks/jobs.ts'
import { acceptItem, deleteRow, rewriteRow } from './write-rows.ts'

/**
 * Plans the transition (core/items/plan-transition.ts), writes the rows and counts of the plan, and returns
 * its change.
 */
export function executeTransition(
  transaction: Transaction,
  queueRow: QueueRow,
  item: Item,
  transition: Transition,
  now: Instant,
): ItemChange {
  const { queueCache, countChanges } = transaction
  const { queue } = queueRow
  const letter = endRedriveBy(transaction, queueRow, item, transition, now)
  const plan = planTransition(item, withLetter(item, transition, queue, letter), {
    queue,
    letter,
    now,
    getDeadQueue: (name) => queueCache.get(name).queue,
    allocateId: (name, partition) =>
      queueCache.allocateId(queueCache.get(name), partition, now, countChanges),
    random: () => queueCache.random(),
  })
  // Before the row is deleted, which names the message of a job.
  const bytes = plan.write === 'move' ? readOwnBytes(transaction.database, queueRow, item) : item
  if (plan.write === 'rewrite') {
    rewriteRow(transaction, queueRow, item, plan.after)
    recordLetterIds(transaction.database, plan.letterIds)
  } else if (plan.write !== 'none') deleteRow(transaction, queueRow, item)
  if (plan.total !== null) countChanges.add(queueRow.id, item.partition, plan.total)
  return plan.write === 'move'
    ? insertMoved(transaction, withBytes(plan.letter, bytes), plan.letterIds, plan.change)
    : plan.change
}

/** Ends the redrive that ends with this transition. Returns its letter as it is afterwards. */
function endRedriveBy(
  transaction: Transaction,
  queueRow: QueueRow,
  item: Item,
  transition: Transition,
  now: Instant,
): ItemHead | undefined {
  const ended = redriveEndedBy(item, transition)
  if (ended === undefined) return undefined
  const { outcome, failure, earlier } = ended
  const end = { outcome, failure, earlier, at: now }
  if (transition.to === 'end-redrive') {
    if (item.state !== 'leased')
      throw new Error(`the redrive of letter ${item.id} cannot end: the letter is ${item.state}`)
    return endLetter(transaction, queueRow, item, end)
  }
  const found = findLetterOfItem(transaction, item)
  return found && endLetter(transaction, found.queueRow, found.letter, end)
}

const existingSql = 'select id, partition from items where queue_id = ? and source_id = ?'

function insertMoved(
  transaction: Transaction,
  letter: Waiting,
  letterIds: readonly LetterIdRecord[],
  change: ItemChange,
): ItemChange {
  const target = transaction.queueCache.get(letter.queue)
  if (acceptItem(transaction, target, letter)) {
    recordLetterIds(transaction.database, letterIds)
    return change
  }
  // An earlier move of this item has inserted its letter. There is one letter per death, so report that one.
  const existing = transaction.database.get(existingSql, target.id, letter.sourceId)
  if (existing === undefined) throw new Error(`source id ${letter.sourceId} exists but was not found`)
  return { ...change, id: readText(existing, 'id'), partition: readNumber(existing, 'partition') }
}
