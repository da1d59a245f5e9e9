/**
 * Decides where an item goes next: on complete, retry, the end of its lease, expiry and the end of retention.
 * Both stores call these functions inside their transactions, so neither has rules of its own. Pure: time and
 * chance are arguments.
 */

import { errorClassMax, failureReasonMax, fingerprintMax } from '../dead-letters/failure-bounds.ts'
import { isRedriving, withFailure } from '../dead-letters/letter.ts'
import type { LetterId, QueueName } from '../ids/ids.ts'
import { cutText } from '../text/storable-text.ts'
import { addDuration, type Instant, instantMax } from '../time/instant.ts'
import { type Failure, type ItemHead, isLetter, type LeasedHead, type WaitingHead } from './item.ts'
import type { QueuePolicy } from './queue.ts'
import { retryDelayUs } from './retry.ts'

/** Why an item changed, for events, logs and metrics. */
export type TransitionCause =
  | 'complete'
  | 'retry'
  | 'lease-end'
  | 'schedule'
  | 'attempts'
  | 'expire'
  | 'declared-dead'
  | 'retention'
  /** The item was sent to another system, which reports later what became of it. */
  | 'hand-over'

/**
 * - `waiting`: back to its partition, at the tail or scheduled.
 * - `move`: to the dead queue of its queue.
 * - `dead`: stays in its queue as dead.
 * - `done`: stays in its queue as completed.
 * - `remove`: deleted, and counted under `as`.
 * - `return`: the item of a redrive died. It is removed from its queue, and its letter waits again.
 * - `end-redrive`: the item is a letter whose redrive reported no outcome before its deadline. That redrive
 *   ends as unknown.
 */
export type Transition = Readonly<
  { cause: TransitionCause } & (
    | { to: 'waiting'; availableAt: Instant | null; failure: Failure | null }
    | { to: 'move'; deadQueue: QueueName; failure: Failure }
    | { to: 'dead'; failure: Failure }
    | { to: 'done' }
    | { to: 'remove'; as: 'completed' | 'dropped' | 'forgotten'; failure: Failure | null }
    | { to: 'return'; letterId: LetterId; failure: Failure; earlier: readonly Failure[] }
    | { to: 'end-redrive'; failure: Failure }
  )
>

/** The request of a worker that gives an item back. */
export type RetryRequest = Readonly<{
  /** When the item becomes available. Null: immediately. Undefined: the retry policy of the queue decides. */
  availableAt?: Instant | null | undefined
  /** In [0, 1): the jitter of the retry policy. */
  chance?: number
  /** No retry can help: the item dies now, regardless of its attempts. */
  isDead: boolean
  error: Readonly<{
    errorCode?: string
    errorClass?: string
    message?: string
    stack?: string
    fingerprint?: string
  }> | null
}>

type Rules = Pick<
  QueuePolicy,
  'attemptsMax' | 'deadQueue' | 'onDead' | 'doneRetentionUs' | 'retry' | 'delivery'
>

export function complete(item: LeasedHead, rules: Rules): Transition {
  // A completed letter stays as done (RESOLVED) until its retention ends: it proves that it was processed.
  if (isLetter(item)) return { to: 'done', cause: 'complete' }
  // The letter of a redriven job is kept as done, and each job is counted once.
  const isKept = rules.doneRetentionUs > 0 && (rules.delivery === undefined || item.letterId === null)
  if (isKept) return { to: 'done', cause: 'complete' }
  return { to: 'remove', as: 'completed', failure: null, cause: 'complete' }
}

/**
 * Removes the item of a redrive that was sent to another system, without ending the redrive: the letter waits
 * until that system has processed the item.
 */
export function handOver(): Transition {
  return { to: 'remove', as: 'completed', failure: null, cause: 'hand-over' }
}

/**
 * A retry kills an item whose attempts exceed the limit. The contract of the Queue API lets only the end of a
 * lease kill an item, but then an item whose workers report every failure would live forever. The attempts
 * must exceed the limit and not only reach it, because clients of the Queue API expect one more lease after a
 * retry (docs/decisions/0007).
 */
export function retryItem(item: LeasedHead, request: RetryRequest, rules: Rules, now: Instant): Transition {
  const toFailure = (errorCode: string) => createFailure(item, request.error ?? {}, errorCode, now)
  if (request.isDead) return kill(item, toFailure('declared_dead'), rules, 'declared-dead')
  if (item.attempts > getAttemptsMax(item, rules)) return kill(item, toFailure('attempts'), rules, 'attempts')
  const availableAt =
    request.availableAt === undefined ? retryAt(item, rules, now, request.chance ?? 0.5) : request.availableAt
  return { to: 'waiting', availableAt, failure: toFailure('retried'), cause: 'retry' }
}

function retryAt(item: LeasedHead, rules: Rules, now: Instant, chance: number): Instant | null {
  const delayUs = retryDelayUs(rules.retry, item.attempts, () => chance)
  return delayUs === 0 ? null : addDuration(now, delayUs)
}

/**
 * Undoes a lease whose client disconnected before it got the item. The item keeps its id, and so its position
 * in the queue, and the attempt does not count.
 */
export function unlease(item: LeasedHead, now: Instant): WaitingHead {
  const { lease, ...rest } = item
  return { ...rest, state: 'waiting', availableAt: null, attempts: item.attempts - 1, updatedAt: now }
}

/**
 * Without the name of the holder: it would give every worker its own group. `Failure.worker` has the name.
 */
const leaseEnded = 'lease ended: the item was not completed, extended or given back in time'

/**
 * The transition of an item that is due: a lease ends, a scheduled item becomes available, a
 * waiting item expires, or the retention of an ended item is over. `chance`, in [0, 1): the jitter of the
 * retry policy, which also applies to leases that end, because the item may be what its workers crash on.
 */
export function onDue(item: ItemHead, rules: Rules, now: Instant, chance = 0.5): Transition {
  switch (item.state) {
    case 'leased': {
      const toFailure = (errorCode: string) => createFailure(item, { message: leaseEnded }, errorCode, now)
      if (isRedriving(item))
        return { to: 'end-redrive', failure: createUnknownOutcome(item, now), cause: 'lease-end' }
      if (isKilledByLeaseEnd(item, rules))
        return kill(
          item,
          toFailure(rules.delivery === 'pull' ? retriesExhausted : 'attempts'),
          rules,
          'attempts',
        )
      if (isExpired(item, now)) return kill(item, toFailure('expired'), rules, 'expire')
      const availableAt = retryAt(item, rules, now, chance)
      return { to: 'waiting', availableAt, failure: toFailure('lease_ended'), cause: 'lease-end' }
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

/** Clocks of servers may differ by this much, although they go by the clock of one database. */
const clockToleranceUs = 1_000_000

/**
 * A step of the clock. `back`: leases may be from a clock that was ahead of now. `forward`: the clock was set
 * forward by `byUs`, and showed `before` when it should have shown the present time.
 */
export type ClockStep =
  | Readonly<{ direction: 'back' }>
  | Readonly<{ direction: 'forward'; byUs: number; before: Instant }>

/** The leases that a step of the clock makes wrong, by the time when they were given or extended. */
export function leasesOfStep(step: ClockStep, now: Instant): Readonly<{ after: Instant; until: Instant }> {
  if (step.direction === 'forward') return { after: 0, until: step.before }
  return { after: addDuration(now, clockToleranceUs), until: Number.MAX_SAFE_INTEGER }
}

/** The earliest deadline that a step of the clock can make wrong. */
export function firstDeadline({ direction }: ClockStep, now: Instant): Instant {
  return direction === 'forward' ? 0 : now
}

/**
 * The deadline of a lease after a step of the clock. Undefined: it is right.
 *
 * After a step forward, the lease keeps the time that it had left. After a step back it gets its whole lease
 * time from now, because nobody knows how much of it has passed.
 */
export function correctLease(item: LeasedHead, step: ClockStep, now: Instant): Instant | undefined {
  const { after, until } = leasesOfStep(step, now)
  if (item.updatedAt <= after || item.updatedAt > until) return undefined
  if (step.direction === 'forward') return addDuration(item.lease.deadline, step.byUs)
  if (isRedriving(item)) return undefined
  return addDuration(now, Math.max(item.lease.deadline - item.updatedAt, 0))
}

/** A scheduled item does not expire before it becomes available: its wait starts then. */
export function expireDeadlineWhenPromoted(
  item: ItemHead,
  rules: Pick<QueuePolicy, 'expireTimeoutUs'>,
  now: Instant,
): Instant {
  return item.expireDeadline > now ? item.expireDeadline : addDuration(now, rules.expireTimeoutUs)
}

/**
 * The time of the next transition that needs no request; null: never. It is stored with the item, so one
 * index finds ended leases, expired items and due schedules.
 */
export function computeDueAt(item: ItemHead, rules: Pick<Rules, 'doneRetentionUs'>): Instant | null {
  switch (item.state) {
    case 'leased':
      return item.lease.deadline
    case 'waiting':
      if (item.availableAt !== null) return item.availableAt
      return isLetter(item) ? null : nullIfNever(item.expireDeadline)
    case 'done':
      return isLetter(item) ? null : computeDoneDueAt(item.endedAt, rules)
    case 'dead':
    case 'discarded':
      return null
  }
}

/** When an ordinary done item leaves; null: never. */
export function computeDoneDueAt(
  endedAt: Instant,
  { doneRetentionUs }: Pick<Rules, 'doneRetentionUs'>,
): Instant | null {
  return nullIfNever(addDuration(endedAt, doneRetentionUs))
}

function nullIfNever(instant: Instant): Instant | null {
  return instant === instantMax ? null : instant
}

/** The failure of an item after one more failed attempt. It keeps the time of the first failure. */
export function createFailure(
  item: LeasedHead | WaitingHead,
  error: NonNullable<RetryRequest['error']>,
  errorCode: string,
  now: Instant,
): Failure {
  const before = item.failure
  const hasError = error.errorClass !== undefined || error.message !== undefined || error.stack !== undefined
  // A worker that asks for a retry without an error adds nothing: keep the error of the earlier attempt.
  const { errorClass = '', message = '', stack = '' } = (hasError ? error : before) ?? {}
  const fingerprint = error.fingerprint ?? (hasError ? undefined : before?.fingerprint)
  return {
    errorCode: cutText(error.errorCode ?? errorCode, failureReasonMax),
    errorClass: cutText(errorClass, errorClassMax),
    message,
    stack,
    attempts: item.attempts,
    firstFailedAt: before?.firstFailedAt ?? now,
    lastFailedAt: now,
    worker: item.state === 'leased' ? item.lease.holder : (before?.worker ?? ''),
    ...(fingerprint !== undefined && { fingerprint: cutText(fingerprint, fingerprintMax) }),
  }
}

/** The failure of a letter whose redrive ended with an unknown outcome. */
export function createUnknownOutcome(letter: LeasedHead | WaitingHead, now: Instant): Failure {
  const message = 'the outcome of the redrive is unknown: the letter may have been processed'
  const failure = createFailure(letter, { message }, 'outcome_unknown', now)
  // The holder of the letter is its redrive. The worker that had the redriven item is unknown.
  return { ...failure, errorClass: '', stack: '', worker: '' }
}

function kill(item: ItemHead, failure: Failure, rules: Rules, cause: TransitionCause): Transition {
  if (item.letterId !== null) {
    const earlier = withFailure(item, failure).history
    return { to: 'return', letterId: item.letterId, failure, earlier, cause }
  }
  return killWithoutLetter(item, failure, rules, cause)
}

/** The death of an item that is not a redrive, or whose letter no longer exists. */
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

/** The reason of a job that died while nobody had leased it: all its retries were used. */
export const retriesExhausted = 'retries_exhausted'

function isKilledByLeaseEnd(item: ItemHead, rules: Rules): boolean {
  return rules.delivery !== 'push' && item.attempts >= getAttemptsMax(item, rules)
}

/** The limit of the item, otherwise the limit of its queue; infinite if neither has one. */
function getAttemptsMax(item: ItemHead, rules: Rules): number {
  if (rules.delivery !== undefined) return rules.attemptsMax
  return item.attemptsMax || rules.attemptsMax || Number.POSITIVE_INFINITY
}

/** Letters never expire. */
export function isExpired(item: ItemHead, now: Instant): boolean {
  return !isLetter(item) && now >= item.expireDeadline
}
