/**
 * The one answer to "where does an item go next?". Both storages call these functions inside their
 * transactions, so that no backend can have rules of its own. Pure: the time comes in, nothing goes out.
 */

import { cutText, errorClassMax, failureReasonMax } from './failure-bounds.ts'
import { type Instant, later } from './instant.ts'
import { type Failure, type ItemHead, isLetter, type LeasedHead, type WaitingHead } from './item.ts'
import { isRedriving, withFailure } from './letter.ts'
import type { QueuePolicy } from './queue.ts'
import { retryDelayUs } from './retry.ts'

/** Why an item changed, for events, logs and the counts of the operator. */
export type TransitionCause =
  | 'complete'
  | 'retry'
  | 'lease-end'
  | 'schedule'
  | 'attempts'
  | 'expire'
  | 'declared-dead'
  | 'retention'

/**
 * `waiting`: back to its partition, at the tail or scheduled. `move`: to its queue's dead queue.
 * `dead`: kept, dead in place. `done`: kept, completed. `remove`: deleted, counted under `as`.
 * `return`: a redrive that died again is gone from its queue, and its letter has it back. `come-back`: a
 * letter whose redrive told nothing in time, ended as unknown.
 */
export type Transition = Readonly<
  { cause: TransitionCause } & (
    | { to: 'waiting'; availableAt: Instant | null; failure: Failure | null }
    | { to: 'move'; deadQueue: string; failure: Failure }
    | { to: 'dead'; failure: Failure }
    | { to: 'done' }
    | { to: 'remove'; as: 'completed' | 'dropped' | 'forgotten'; failure: Failure | null }
    | { to: 'return'; letterId: string; failure: Failure; earlier: readonly Failure[] }
    | { to: 'come-back'; failure: Failure }
  )
>

/** What a worker says when it gives an item back. */
export type RetryRequest = Readonly<{
  /** Not before then; null: at once; undefined: when the queue's retry policy says. */
  availableAt?: Instant | null | undefined
  /** In [0, 1): the jitter of the retry policy. Chance comes in from outside. */
  chance?: number
  /** No retry can help: dead now, whatever the attempts. */
  isDead: boolean
  error: Readonly<{ reason?: string; errorClass?: string; message?: string; stack?: string }> | null
}>

type Rules = Pick<QueuePolicy, 'attemptsMax' | 'deadQueue' | 'onDead' | 'keepDoneUs' | 'retry'>

export function complete(item: LeasedHead, rules: Rules): Transition {
  // A completed letter stays as done (RESOLVED) until retention takes it: it is the proof.
  if (isLetter(item) || rules.keepDoneUs > 0) return { to: 'done', cause: 'complete' }
  return { to: 'remove', as: 'completed', failure: null, cause: 'complete' }
}

/**
 * Attempts are bounded here too: the protocol has only the end of a lease kill, and an item whose workers
 * always report their failures would live forever. But they must exceed the bound, which leaves clients of
 * the protocol the lease they count on after a retry (docs/decisions/0007).
 */
export function retryItem(item: LeasedHead, given: RetryRequest, rules: Rules, now: Instant): Transition {
  const failed = (reason: string) => createFailure(item, given.error ?? {}, reason, now)
  if (given.isDead) return kill(item, failed('declared_dead'), rules, 'declared-dead')
  if (item.attempts > getAttemptsMax(item, rules)) return kill(item, failed('attempts'), rules, 'attempts')
  const availableAt = given.availableAt === undefined ? retryAt(item, given, rules, now) : given.availableAt
  return { to: 'waiting', availableAt, failure: failed('retried'), cause: 'retry' }
}

function retryAt(item: LeasedHead, given: RetryRequest, rules: Rules, now: Instant): Instant | null {
  const delayUs = retryDelayUs(rules.retry, item.attempts, () => given.chance ?? 0.5)
  return delayUs === 0 ? null : later(now, delayUs)
}

/** LeasedHead for somebody who was gone by then: as if it had never been, at its old place in the queue. */
export function unlease(item: LeasedHead, now: Instant): WaitingHead {
  const { lease, ...rest } = item
  return { ...rest, state: 'waiting', availableAt: null, attempts: item.attempts - 1, updatedAt: now }
}

/** Without the name of who held it: that is kept as the worker, and would make one cause of failure many. */
const leaseEnded = 'lease ended: the item was not completed, extended or given back in time'

/**
 * What the passing of time does to an item whose `dueAt` has come: a lease ends, a scheduled item
 * becomes available, a waiting one expires, a done one has been kept long enough.
 */
export function onDue(item: ItemHead, rules: Rules, now: Instant): Transition {
  switch (item.state) {
    case 'leased': {
      const failed = (reason: string) => createFailure(item, { message: leaseEnded }, reason, now)
      if (isRedriving(item))
        return { to: 'come-back', failure: createUnknownOutcome(item, now), cause: 'lease-end' }
      if (item.attempts >= getAttemptsMax(item, rules))
        return kill(item, failed('attempts'), rules, 'attempts')
      if (isExpired(item, now)) return kill(item, failed('expired'), rules, 'expire')
      return { to: 'waiting', availableAt: null, failure: failed('lease_ended'), cause: 'lease-end' }
    }
    case 'waiting': {
      if (item.availableAt !== null) {
        return { to: 'waiting', availableAt: null, failure: item.failure, cause: 'schedule' }
      }
      const failure = createFailure(item, { message: 'waited longer than its queue allows' }, 'expired', now)
      return kill(item, failure, rules, 'expire')
    }
    case 'done':
    case 'dead':
    case 'discarded':
      return { to: 'remove', as: 'forgotten', failure: null, cause: 'retention' }
  }
}

/** A scheduled item does not expire before it was available: its wait starts then. */
export function expireDeadlineWhenPromoted(
  item: ItemHead,
  rules: Pick<QueuePolicy, 'expireUs'>,
  now: Instant,
): Instant {
  return item.expireDeadline > now ? item.expireDeadline : later(now, rules.expireUs)
}

/**
 * When time alone will change the item next, or null for never. Stored with the item: one index on
 * it finds ended leases, expired items and due schedules alike.
 */
export function dueAt(item: ItemHead, rules: Pick<Rules, 'keepDoneUs'>): Instant | null {
  switch (item.state) {
    case 'leased':
      return item.lease.deadline
    case 'waiting':
      if (item.availableAt !== null) return item.availableAt
      return isLetter(item) ? null : item.expireDeadline
    case 'done':
      return isLetter(item) ? null : later(item.endedAt, rules.keepDoneUs)
    case 'dead':
    case 'discarded':
      return null
  }
}

/** The failure of an item after one more failed attempt; the first failure stays the first. */
export function createFailure(
  item: LeasedHead | WaitingHead,
  error: NonNullable<RetryRequest['error']>,
  reason: string,
  now: Instant,
): Failure {
  const before = item.failure
  const hasNews = error.errorClass !== undefined || error.message !== undefined || error.stack !== undefined
  return {
    reason: cutText(error.reason ?? reason, failureReasonMax),
    // A worker that only says "retry" tells nothing new: keep what an earlier attempt reported.
    errorClass: hasNews ? cutText(error.errorClass ?? '', errorClassMax) : (before?.errorClass ?? ''),
    message: hasNews ? (error.message ?? '') : (before?.message ?? ''),
    stack: hasNews ? (error.stack ?? '') : (before?.stack ?? ''),
    attempts: item.attempts,
    firstFailedAt: before?.firstFailedAt ?? now,
    lastFailedAt: now,
    worker: item.state === 'leased' ? item.lease.holder : (before?.worker ?? ''),
  }
}

/** What a letter is told when nobody knows what became of its redrive. */
export function createUnknownOutcome(letter: LeasedHead | WaitingHead, now: Instant): Failure {
  const message = 'what became of its redrive is not known: it may have been processed'
  const failure = createFailure(letter, { message }, 'outcome_unknown', now)
  // Who holds the letter is its redrive, not a worker: which one had the copy is not known either.
  return { ...failure, errorClass: '', stack: '', worker: '' }
}

function kill(item: ItemHead, failure: Failure, rules: Rules, cause: TransitionCause): Transition {
  if (item.letterId !== null) {
    const earlier = withFailure(item, failure).history
    return { to: 'return', letterId: item.letterId, failure, earlier, cause }
  }
  return killWithoutLetter(item, failure, rules, cause)
}

/** Also for a redrive whose letter is not there any more. */
export function killWithoutLetter(
  item: ItemHead,
  failure: Failure,
  rules: Rules,
  cause: TransitionCause,
): Transition {
  if (isLetter(item)) return { to: 'dead', failure, cause }
  if (rules.deadQueue !== null) return { to: 'move', deadQueue: rules.deadQueue, failure, cause }
  if (rules.onDead === 'keep') return { to: 'dead', failure, cause }
  return { to: 'remove', as: 'dropped', failure, cause }
}

/** The item's own bound before that of its queue; infinite where neither sets one. */
function getAttemptsMax(item: ItemHead, rules: Rules): number {
  return item.attemptsMax || rules.attemptsMax || Number.POSITIVE_INFINITY
}

/** Letters never are. */
export function isExpired(item: ItemHead, now: Instant): boolean {
  return !isLetter(item) && now >= item.expireDeadline
}
