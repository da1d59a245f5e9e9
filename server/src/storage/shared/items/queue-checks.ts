/** The checks of queues that both stores make, with the same messages. */
import type { PolicyChanges, Queue, QueuePolicy } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { ItemToImport } from '../../contract/items.ts'

export function createQueueNotFoundError(name: string): KnownError {
  return new KnownError('QUEUE_NOT_FOUND', `there is no queue named ${name}`)
}

export function createPartitionNotFoundError(
  name: string,
  partition: number,
  partitions: number,
): KnownError {
  return new KnownError(
    'PARTITION_NOT_FOUND',
    `queue ${name} has no partition ${partition}; it has ${partitions}, numbered from 0`,
  )
}

/** Refuses an import of new items only, if some of them are already in the queue. */
export function refuseRepeats(name: string, count: number): void {
  if (count === 0) return
  throw new KnownError('SOURCE_ID_EXISTS', `queue ${name} already has ${count} of the imported source ids`)
}

export function createQueueInUseError(name: string, user: string): KnownError {
  return new KnownError('QUEUE_IN_USE', `queue ${name} is the dead queue of ${user}`)
}

/** Refuses to delete a queue that holds open letters. `count`: their number. */
export function checkHoldsNoOpenLetters({ name }: Queue, count: number): void {
  if (count === 0) return
  throw new KnownError(
    'QUEUE_HOLDS_LETTERS',
    `queue ${name} holds ${count} open dead letters, which would be lost with it; ` +
      'redrive or discard them first, or set force',
  )
}

/** Refuses to discard all letters of a guarded class at once. `count`: the letters to discard. */
export function checkMayClear({ name, letterClass }: Queue, count: number): void {
  if (count === 0) return
  throw new KnownError(
    'QUEUE_HOLDS_LETTERS',
    `queue ${name} is of class ${letterClass} and holds ${count} open dead letters`,
  )
}

/**
 * Refuses a chain of dead queues: the dead queue must not have a dead queue, and a queue that is a dead queue
 * cannot get one. `found`: the queue with the name `deadQueue`, if it exists.
 */
export function checkDeadQueue(
  name: string,
  deadQueue: string | null,
  found: Queue | null | undefined,
  isDeadQueue: boolean,
): void {
  if (deadQueue === null) return
  const refuse = (why: string) => new KnownError('DEAD_QUEUE_INVALID', why)
  if (deadQueue === name) throw refuse(`queue ${name} cannot be its own dead queue`)
  if (found === null || found === undefined) throw refuse(`dead queue ${deadQueue} of ${name} does not exist`)
  if (found.deadQueue !== null) throw refuse(`dead queue ${deadQueue} of ${name} has a dead queue itself`)
  if (isDeadQueue) throw refuse(`queue ${name} is a dead queue and cannot have one itself`)
}

/** Whether the change gives a dead queue to a queue that had none. */
export function gainsDeadQueue(before: Queue, after: Queue): boolean {
  return before.deadQueue === null && after.deadQueue !== null
}

/** Refuses a dead queue for a queue that has letters: letters are redriven to queues with a dead queue. */
export function checkHasNoLetters({ name }: Queue, hasLetters: boolean): void {
  if (!hasLetters) return
  throw new KnownError(
    'DEAD_QUEUE_INVALID',
    `queue ${name} has or had dead letters of its own and cannot have a dead queue: use another queue for the work, or delete it and create it again`,
  )
}

/**
 * Refuses a letter in a queue that has a dead queue. Letters are redriven to such queues, but never to a
 * queue that holds letters: one letter imported by mistake would end all redrives to the queue.
 */
export function checkTakesLetters({ name, deadQueue }: Queue): void {
  if (deadQueue === null) return
  throw new KnownError(
    'DEAD_QUEUE_INVALID',
    `queue ${name} takes no dead letters: they go to its dead queue, ${deadQueue}`,
  )
}

export function checkImport(queue: Queue, items: readonly Pick<ItemToImport, 'origin'>[]): void {
  if (items.some(({ origin }) => origin != null)) checkTakesLetters(queue)
}

export function checkTimes({
  leaseTimeoutUs,
  expireTimeoutUs,
}: Pick<QueuePolicy, 'leaseTimeoutUs' | 'expireTimeoutUs'>): void {
  if (leaseTimeoutUs <= expireTimeoutUs) return
  throw new KnownError(
    'LEASE_TOO_LONG',
    'lease_timeout cannot be longer than expire_timeout: leased items would expire',
  )
}

/**
 * Checks a change of a time against the stored policy: two people can each change one of the times without
 * knowing of the other change. A change of other settings is not refused because of the times.
 */
export function checkChangedTimes(changes: PolicyChanges, merged: Queue): void {
  if (changes.leaseTimeoutUs !== undefined || changes.expireTimeoutUs !== undefined) checkTimes(merged)
}
