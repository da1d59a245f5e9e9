/** What both backends refuse, in the same words. */
import type { PolicyChanges, Queue, QueuePolicy } from '../../core/queue.ts'
import { KnownError } from '../../errors.ts'
import type { ItemToImport } from '../contract/items.ts'

export function queueNotFound(name: string): KnownError {
  return new KnownError('QUEUE_NOT_FOUND', `there is no queue named ${name}`)
}

export function partitionNotFound(name: string, partition: number, partitions: number): KnownError {
  return new KnownError(
    'PARTITION_NOT_FOUND',
    `queue ${name} has no partition ${partition}; it has ${partitions}, numbered from 0`,
  )
}

export function queueInUse(name: string, user: string): KnownError {
  return new KnownError('QUEUE_IN_USE', `queue ${name} is the dead queue of ${user}`)
}

export function checkOpenLetters(queue: Queue, count: number): void {
  if (count === 0) return
  throw new KnownError(
    'QUEUE_HOLDS_LETTERS',
    `queue ${queue.name} is of class ${queue.letterClass} and holds ${count} open dead letters`,
  )
}

/**
 * Looks both ways, so that no chain of dead queues can come about: the dead queue must have none of
 * its own, and a queue that is a dead queue cannot get one. `found`: the queue of that name, if any.
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

/** Whether the change makes it a queue that letters go back to. */
export function gainsDeadQueue(before: Queue, after: Queue): boolean {
  return before.deadQueue === null && after.deadQueue !== null
}

/** A queue that letters were captured into cannot become one that they go back to. */
export function checkHasNoLetters({ name }: Queue, hasLetters: boolean): void {
  if (!hasLetters) return
  throw new KnownError(
    'DEAD_QUEUE_INVALID',
    `queue ${name} has or had dead letters of its own and cannot have a dead queue: use another queue for the work, or delete it and create it again`,
  )
}

/**
 * A queue with a dead queue of its own is one that letters go back to, and no letter is sent to where letters are: one
 * that was put there by mistake would end all redrives to it.
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

/** On the whole policy, since each of the two may stay as it was. */
export function checkTimes({ leaseUs, expireUs }: Pick<QueuePolicy, 'leaseUs' | 'expireUs'>): void {
  if (leaseUs <= expireUs) return
  throw new KnownError('LEASE_TOO_LONG', 'lease: cannot be longer than expire, or leased items would expire')
}

/**
 * A change of the times is checked with what stands by then: two people may each change one of them, and
 * neither saw the other's. What is not changed is not held against a change of something else.
 */
export function checkChangedTimes(changes: PolicyChanges, merged: Queue): void {
  if (changes.leaseUs !== undefined || changes.expireUs !== undefined) checkTimes(merged)
}
