/**
 * Turns a transition into a plan: which rows are written, which total grows, and which change is reported.
 * Both stores execute the same plan, SQLite row by row and PostgreSQL in batches, so neither has rules of its
 * own.
 *
 * A store works in three steps:
 * 1. `redriveEndedBy` returns the redrive of a letter that ends with the transition. The store ends it.
 * 2. `withLetter` replaces the transition if no letter waits for that redrive any more.
 * 3. `planTransition` returns the plan for the item itself.
 */

import { createDeadLetter, mapPartition } from '../dead-letters/dead-letter.ts'
import { type LetterIdRecord, recordEarlierIds, recordNewId } from '../dead-letters/letter-ids.ts'
import type { ItemId, LetterId, QueueName } from '../ids/ids.ts'
import type { Instant } from '../time/instant.ts'
import { applyTransition } from './apply-transition.ts'
import type { Failure, ItemHead, SentOutcome, WaitingHead } from './item.ts'
import type { Queue } from './queue.ts'
import { killWithoutLetter, type Transition, type TransitionCause } from './transitions.ts'

/** One change of one item, as the store reports it. */
export type ItemChange = Readonly<{
  fromId: ItemId
  fromQueue: QueueName
  fromPartition: number
  to: 'waiting' | 'scheduled' | 'leased' | 'done' | 'dead' | 'moved' | 'returned' | 'removed'
  cause: TransitionCause | 'extend'
  /** The id after the change; null if the item was removed. `queue` and `partition` are where it is now. */
  id: ItemId | null
  queue: QueueName
  partition: number
  failure: Failure | null
  /** If the item was a redrive whose letter waits for it: the outcome of that redrive. */
  outcome?: SentOutcome
}>

/** A redrive that ends together with a transition of an item. */
export type EndedRedrive = Readonly<{
  letterId: LetterId
  /** The ordinal of the redrive; null: the redrive that is in progress. */
  number: number | null
  outcome: SentOutcome
  failure: Failure | null
  /** Failures of the redriven item before `failure`, newest first. */
  earlier: readonly Failure[]
}>

const noFailures: readonly Failure[] = []

/** Undefined if the item is not a redrive, or the transition does not end it. */
export function redriveEndedBy(
  item: Pick<ItemHead, 'rootId' | 'letterId' | 'retryCount'>,
  transition: Transition,
): EndedRedrive | undefined {
  if (transition.to === 'end-redrive') {
    const { failure } = transition
    return { letterId: item.rootId, number: null, outcome: 'unknown', failure, earlier: noFailures }
  }
  if (transition.to === 'return') {
    const { letterId, failure, earlier } = transition
    return { letterId, number: item.retryCount, outcome: 'failed', failure, earlier }
  }
  if (transition.cause !== 'complete' || item.letterId === null) return undefined
  const { letterId, retryCount: number } = item
  return { letterId, number, outcome: 'resolved', failure: null, earlier: noFailures }
}

/**
 * The item of a redrive that dies returns to its letter. If the letter is gone, or waits for another redrive,
 * the item dies like any other item of its queue. `letter`: the letter whose redrive ended; undefined if
 * there is none.
 */
export function withLetter(
  item: ItemHead,
  transition: Transition,
  queue: Queue,
  letter: ItemHead | undefined,
): Transition {
  if (transition.to !== 'return' || letter !== undefined) return transition
  return killWithoutLetter(item, transition.failure, queue, transition.cause)
}

/** The facts besides the item that a plan depends on. The functions are called only if they are needed. */
export type PlanContext = Readonly<{
  /** The queue of the item. */
  queue: Queue
  /** The letter whose redrive ended with this transition, as it is afterwards; undefined if there is none. */
  letter: ItemHead | undefined
  now: Instant
  getDeadQueue: (name: QueueName) => Queue
  allocateId: (queue: QueueName, partition: number, now: Instant) => ItemId
  /** In [0, 1): the jitter of the first automatic redrive of a new letter. */
  random: () => number
}>

/** The total of the item's partition that a plan adds 1 to. */
export type TransitionTotal = 'completed' | 'deadLettered' | 'dropped' | 'forgotten'

/**
 * `letterIds`: ids by which letters are found from now on, recorded with the row.
 *
 * `rewrite`: the item stays in its queue as `after`, perhaps with another id. `remove`: its row is deleted.
 * `move`: its row is deleted and `letter` is inserted into `letter.queue`, unless that queue already has a
 * letter with its source id. `none`: ending the redrive has already written the row.
 */
export type TransitionPlan = Readonly<
  { total: TransitionTotal | null; change: ItemChange } & (
    | { write: 'rewrite'; after: ItemHead; letterIds: readonly LetterIdRecord[] }
    | { write: 'remove' }
    | { write: 'move'; letter: WaitingHead; letterIds: readonly LetterIdRecord[] }
    | { write: 'none' }
  )
>

export function planTransition(item: ItemHead, transition: Transition, context: PlanContext): TransitionPlan {
  switch (transition.to) {
    case 'waiting':
    case 'done':
    case 'dead': {
      const { queue, now, letter } = context
      const allocateId = () => context.allocateId(item.queue, item.partition, now)
      const after = applyTransition(item, transition, queue, now, allocateId)
      const failure = transition.to === 'done' ? null : transition.failure
      const isScheduled = after.state === 'waiting' && after.availableAt !== null
      const to = isScheduled ? 'scheduled' : transition.to
      const change = changeInQueue(item, transition, to, after.id, failure)
      const letterIds = recordNewId(item, after)
      const reported = withOutcome(change, letter, 'resolved')
      return { write: 'rewrite', after, letterIds, total: null, change: reported }
    }
    case 'remove': {
      const change = changeInQueue(item, transition, 'removed', null, transition.failure)
      return {
        write: 'remove',
        total: transition.as,
        change: withOutcome(change, context.letter, 'resolved'),
      }
    }
    case 'return': {
      const { letter } = context
      if (letter === undefined)
        throw new Error(`item ${item.id} returns to its letter, but no letter waits for it`)
      const change = changeTo(letter, item, transition, 'returned', transition.failure)
      return { write: 'remove', total: 'deadLettered', change: { ...change, outcome: 'failed' } }
    }
    case 'end-redrive': {
      const to = context.letter?.state === 'dead' ? 'dead' : 'waiting'
      const change = changeInQueue(item, transition, to, item.id, transition.failure)
      return { write: 'none', total: null, change: { ...change, outcome: 'unknown' } }
    }
    case 'move': {
      const queue = context.getDeadQueue(transition.deadQueue)
      const partition = mapPartition(item.partition, queue)
      const id = context.allocateId(queue.name, partition, context.now)
      const originKind = context.queue.delivery === undefined ? 'queue' : 'webhook'
      const destination = { originKind, queue, partition, id, chance: context.random() } as const
      const letter = createDeadLetter(item, transition.failure, destination, context.now)
      const change = changeTo(letter, item, transition, 'moved', transition.failure)
      const letterIds = recordEarlierIds(item, letter)
      return { write: 'move', letter, letterIds, total: 'deadLettered', change }
    }
  }
}

/** The change of an ordinary item that is completed. Stores handle this case without a plan. */
export function changeByComplete(
  { queue, partition }: Readonly<{ queue: QueueName; partition: number }>,
  id: ItemId,
  isKept: boolean,
): ItemChange {
  return {
    fromId: id,
    fromQueue: queue,
    fromPartition: partition,
    to: isKept ? 'done' : 'removed',
    cause: 'complete',
    id: isKept ? id : null,
    queue,
    partition,
    failure: null,
  }
}

export function changeByExtend(item: ItemHead): ItemChange {
  const { id, queue, partition, failure } = item
  return {
    fromId: id,
    fromQueue: queue,
    fromPartition: partition,
    to: 'leased',
    cause: 'extend',
    id,
    queue,
    partition,
    failure,
  }
}

function changeInQueue(
  item: ItemHead,
  { cause }: Transition,
  to: ItemChange['to'],
  id: ItemId | null,
  failure: Failure | null,
): ItemChange {
  const { queue, partition } = item
  return {
    fromId: item.id,
    fromQueue: queue,
    fromPartition: partition,
    to,
    cause,
    id,
    queue,
    partition,
    failure,
  }
}

function changeTo(
  { id, queue, partition }: ItemHead,
  from: ItemHead,
  { cause }: Transition,
  to: ItemChange['to'],
  failure: Failure | null,
): ItemChange {
  return {
    fromId: from.id,
    fromQueue: from.queue,
    fromPartition: from.partition,
    to,
    cause,
    id,
    queue,
    partition,
    failure,
  }
}

function withOutcome(change: ItemChange, letter: ItemHead | undefined, outcome: SentOutcome): ItemChange {
  return letter === undefined ? change : { ...change, outcome }
}
