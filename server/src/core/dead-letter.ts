import { type Instant, later } from './instant.ts'
import type { Failure, ItemHead, WaitingHead } from './item.ts'
import { newLetterFacts, withFailure } from './letter.ts'
import type { QueuePolicy } from './queue.ts'

/** Where the letter goes. */
type Destination = Readonly<{
  queue: Pick<QueuePolicy, 'expireUs' | 'redrive'> & { name: string }
  partition: number
  id: string
  /** In [0, 1): the jitter of an automatic redrive. */
  chance: number
}>

/**
 * The letter that an item becomes in its dead queue: the same bytes, a life of its own. Its source id
 * is the item's id, so that doing it twice makes one letter.
 */
export function createDeadLetter(
  item: ItemHead,
  failure: Failure,
  place: Destination,
  now: Instant,
): WaitingHead {
  return {
    id: place.id,
    rootId: place.id,
    queue: place.queue.name,
    partition: place.partition,
    sourceId: item.id,
    state: 'waiting',
    availableAt: null,
    attempts: 0,
    attemptsMax: 0,
    priority: item.priority,
    kind: item.kind,
    encoding: item.encoding,
    reference: item.reference,
    createdAt: now,
    updatedAt: now,
    // Informative only: letters do not expire.
    expireDeadline: later(now, place.queue.expireUs),
    ...withFailure(item, failure),
    origin: {
      kind: 'queue',
      name: item.queue,
      partition: item.partition,
      id: item.id,
      group: null,
      cluster: null,
      createdAt: item.createdAt,
    },
    diedAt: now,
    letterId: null,
    redrives: 0,
    // The store knows it.
    groupId: null,
    letter: newLetterFacts(now, place.queue.redrive, () => place.chance),
  }
}

/** A fixed place, not the emptiest: a move that is repeated after a crash goes where it went before. */
export function deadPartition(partition: number, deadQueue: Readonly<{ partitions: number }>): number {
  return partition % deadQueue.partitions
}
