import { applyTransition } from '../../../core/apply-transition.ts'
import { deadLetterOf, deadPartition } from '../../../core/dead-letter.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Item } from '../../../core/item.ts'
import { killWithoutLetter, type Transition } from '../../../core/transitions.ts'
import type { ItemChange } from '../../contract/items.ts'
import { endLetter, letterOf, resolveLetter } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { acceptItem, remove, rewrite } from './items.ts'

/** Makes of the item what the rules decided, and says what happened. */
export function executeTransition(
  transaction: Transaction,
  queueRow: QueueRow,
  item: Item,
  transition: Transition,
  now: Instant,
): ItemChange {
  const { queueCache, tally } = transaction
  const from = { fromId: item.id, fromQueue: item.queue, fromPartition: item.partition }
  const here = { ...from, queue: item.queue, partition: item.partition, cause: transition.cause }
  switch (transition.to) {
    case 'waiting':
    case 'done':
    case 'dead': {
      const nextId = () => queueCache.nextIds(queueRow, item.partition, now, 1, tally)[0] as string
      const after = applyTransition(item, transition, queueRow.queue, now, nextId)
      rewrite(transaction, queueRow, item, after)
      const ended = transition.to === 'done' ? resolveLetter(transaction, item, now) : {}
      const isScheduled = transition.to === 'waiting' && transition.availableAt !== null
      const failure = transition.to === 'done' ? null : transition.failure
      return { ...here, to: isScheduled ? 'scheduled' : transition.to, id: after.id, failure, ...ended }
    }
    case 'move': {
      const target = queueCache.get(transition.deadQueue)
      const partition = deadPartition(item.partition, target.queue)
      const [id = ''] = queueCache.nextIds(target, partition, now, 1, tally)
      const place = { queue: target.queue, partition, id, chance: queueCache.chance() }
      const letter = deadLetterOf(item, transition.failure, place, now)
      remove(transaction, queueRow, item)
      tally.add(queueRow.id, item.partition, 'deadLettered')
      const moved = {
        ...from,
        cause: transition.cause,
        to: 'moved',
        queue: letter.queue,
        failure: transition.failure,
      } as const
      if (acceptItem(transaction, target, letter)) return { ...moved, id, partition }
      // It is there already, because an earlier move got that far: one dead letter per death.
      const sql = 'select id, partition from items where queue_id = ? and source_id = ?'
      const there = transaction.database.get(sql, target.id, item.id)
      return { ...moved, id: there?.id as string, partition: there?.partition as number }
    }
    case 'remove': {
      remove(transaction, queueRow, item)
      tally.add(queueRow.id, item.partition, transition.as)
      const ended = transition.as === 'completed' ? resolveLetter(transaction, item, now) : {}
      return { ...here, to: 'removed', id: null, failure: transition.failure, ...ended }
    }
    case 'return': {
      const back = letterOf(transaction, item)
      if (back === undefined) {
        const alone = killWithoutLetter(item, transition.failure, queueRow.queue, transition.cause)
        return executeTransition(transaction, queueRow, item, alone, now)
      }
      remove(transaction, queueRow, item)
      tally.add(queueRow.id, item.partition, 'deadLettered')
      const { failure, earlier } = transition
      const end = { outcome: 'failed', failure, earlier, at: now } as const
      const { id, queue, partition } = endLetter(transaction, back.queueRow, back.letter, end)
      return { ...here, to: 'returned', queue, partition, id, failure, outcome: end.outcome }
    }
    case 'come-back': {
      if (item.state !== 'leased') throw new Error(`letter ${item.id} comes back but is ${item.state}`)
      const end = { outcome: 'unknown', failure: transition.failure, at: now } as const
      const { state, id } = endLetter(transaction, queueRow, item, end)
      const to = state === 'dead' ? 'dead' : 'waiting'
      return { ...here, to, id, failure: transition.failure, outcome: end.outcome }
    }
  }
}
