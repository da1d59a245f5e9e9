import { type ItemId, type QueueName, toRootId } from '../ids/ids.ts'
import type { Failure, ItemHead, WaitingHead } from '../items/item.ts'
import type { QueuePolicy } from '../items/queue.ts'
import { addDuration, type Instant } from '../time/instant.ts'
import { createLetterFacts, withFailure } from './letter.ts'

type Destination = Readonly<{
  /** The kind of the queue that the item died in; default `queue`. */
  originKind?: 'queue' | 'webhook'
  queue: Pick<QueuePolicy, 'expireTimeoutUs' | 'redrive'> & { name: QueueName }
  partition: number
  /** The id of the new letter. */
  id: ItemId
  /** In [0, 1): the jitter of the automatic redrive. */
  chance: number
}>

/**
 * Creates the dead letter of an item that died. The letter has the bytes of the item, but its own id, times
 * and attempts. Its source id is the id of the item, so moving the same item twice creates one letter.
 */
export function createDeadLetter(
  item: ItemHead,
  failure: Failure,
  destination: Destination,
  now: Instant,
): WaitingHead {
  return {
    id: destination.id,
    rootId: toRootId(destination.id),
    queue: destination.queue.name,
    partition: destination.partition,
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
    // Only shown: letters do not expire.
    expireDeadline: addDuration(now, destination.queue.expireTimeoutUs),
    ...withFailure(item, failure),
    origin: {
      kind: destination.originKind ?? 'queue',
      name: item.queue,
      partition: item.partition,
      id: item.id,
      group: null,
      cluster: null,
      createdAt: item.createdAt,
    },
    deadLetteredAt: now,
    letterId: null,
    retryCount: 0,
    // The store sets the group when it inserts the letter.
    groupId: null,
    letter: createLetterFacts(now, destination.queue.redrive, () => destination.chance),
  }
}

/**
 * The partition of `queue` that an item from `partition` of another queue goes to. It is computed, not the
 * emptiest one, so that a move that is repeated after a crash goes to the same partition.
 */
export function mapPartition(partition: number, queue: Readonly<{ partitions: number }>): number {
  return partition % queue.partitions
}
