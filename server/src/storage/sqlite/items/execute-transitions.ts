import { applyTransition } from '../../../core/apply-transition.ts'
import { deadLetterOf, deadPartition } from '../../../core/dead-letter.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Item } from '../../../core/item.ts'
import { dieAlone, type Transition } from '../../../core/transitions.ts'
import type { ItemChange } from '../../contract/items.ts'
import { endLetter, letterOf, resolveLetter } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { acceptItem, remove, rewrite } from './items.ts'

/** Makes of the item what the rules decided, and says what happened. */
export function executeTransition(
  transaction: Transaction,
  known: QueueRow,
  item: Item,
  fate: Transition,
  now: Instant,
): ItemChange {
  const { book, tally } = transaction
  const from = { fromId: item.id, fromQueue: item.queue, fromPartition: item.partition }
  const here = { ...from, queue: item.queue, partition: item.partition, because: fate.because }
  switch (fate.to) {
    case 'waiting':
    case 'done':
    case 'dead': {
      const nextId = () => book.nextIds(known, item.partition, now, 1, tally)[0] as string
      const after = applyTransition(item, fate, known.queue, now, nextId)
      rewrite(transaction, known, item, after)
      const ended = fate.to === 'done' ? resolveLetter(transaction, item, now) : {}
      const isScheduled = fate.to === 'waiting' && fate.availableAt !== null
      const failure = fate.to === 'done' ? null : fate.failure
      return { ...here, to: isScheduled ? 'scheduled' : fate.to, id: after.id, failure, ...ended }
    }
    case 'move': {
      const target = book.get(fate.deadQueue)
      const partition = deadPartition(item.partition, target.queue)
      const [id = ''] = book.nextIds(target, partition, now, 1, tally)
      const place = { queue: target.queue, partition, id, chance: book.chance() }
      const letter = deadLetterOf(item, fate.failure, place, now)
      remove(transaction, known, item)
      tally.add(known.id, item.partition, 'deadLettered')
      const moved = {
        ...from,
        because: fate.because,
        to: 'moved',
        queue: letter.queue,
        failure: fate.failure,
      } as const
      if (acceptItem(transaction, target, letter)) return { ...moved, id, partition }
      // It is there already, because an earlier move got that far: one dead letter per death.
      const sql = 'select id, partition from items where queue_id = ? and source_id = ?'
      const there = transaction.database.get(sql, target.id, item.id)
      return { ...moved, id: there?.id as string, partition: there?.partition as number }
    }
    case 'remove': {
      remove(transaction, known, item)
      tally.add(known.id, item.partition, fate.as)
      const ended = fate.as === 'completed' ? resolveLetter(transaction, item, now) : {}
      return { ...here, to: 'removed', id: null, failure: fate.failure, ...ended }
    }
    case 'return': {
      const back = letterOf(transaction, item)
      if (back === undefined) {
        const alone = dieAlone(item, fate.failure, known.queue, fate.because)
        return executeTransition(transaction, known, item, alone, now)
      }
      remove(transaction, known, item)
      tally.add(known.id, item.partition, 'deadLettered')
      const { failure, earlier } = fate
      const end = { outcome: 'failed', failure, earlier, at: now } as const
      const { id, queue, partition } = endLetter(transaction, back.known, back.letter, end)
      return { ...here, to: 'returned', queue, partition, id, failure, outcome: end.outcome }
    }
    case 'come-back': {
      if (item.state !== 'leased') throw new Error(`letter ${item.id} comes back but is ${item.state}`)
      const end = { outcome: 'unknown', failure: fate.failure, at: now } as const
      const { state, id } = endLetter(transaction, known, item, end)
      const to = state === 'dead' ? 'dead' : 'waiting'
      return { ...here, to, id, failure: fate.failure, outcome: end.outcome }
    }
  }
}
