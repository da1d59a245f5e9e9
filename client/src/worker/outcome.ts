import type { Time } from '../http/time.ts'
import { type ItemFailure, toItemFailure } from '../queues/item-failure.ts'

type OutcomeOptions = Readonly<{
  /** Your own short code, for finding and counting dead letters. */
  errorCode?: string
  /** Your own name of the cause: dead letters with the same name are one group. */
  fingerprint?: string
  /** The original error. Its class, message and stack are recorded as the failure. */
  cause?: unknown
}>

/** Thrown by a handler: retry the item, but not before the given time. */
export class RetryLater extends Error {
  readonly errorCode: string | undefined
  readonly fingerprint: string | undefined
  readonly at: Time | undefined
  readonly afterMs: number | undefined

  constructor(message: string, when: Readonly<{ at: Time } | { afterMs: number }> & OutcomeOptions) {
    super(message, 'cause' in when ? { cause: when.cause } : undefined)
    this.name = 'RetryLater'
    this.errorCode = when.errorCode
    this.fingerprint = when.fingerprint
    this.at = 'at' in when ? when.at : undefined
    this.afterMs = 'afterMs' in when ? when.afterMs : undefined
  }
}

/** Thrown by a handler: no retry can help, so the item becomes dead now. */
export class Dead extends Error {
  readonly errorCode: string | undefined
  readonly fingerprint: string | undefined

  constructor(message: string, options: OutcomeOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'Dead'
    this.errorCode = options.errorCode
    this.fingerprint = options.fingerprint
  }
}

/** How the worker returns a failed item to its queue. */
export type RetryRequest = Readonly<{ retryAt?: Time; isDead: boolean; failure: ItemFailure | null }>

export function toRetryRequest(
  thrown: unknown,
  nowMs: number,
  retryDelayMs: () => number | undefined = () => undefined,
): RetryRequest {
  if (thrown instanceof Dead) return { isDead: true, failure: describeOutcome(thrown) }
  if (thrown instanceof RetryLater) {
    const { at, afterMs = 0 } = thrown
    return {
      isDead: false,
      failure: describeOutcome(thrown),
      ...keepValidTime(at ?? new Date(nowMs + afterMs)),
    }
  }
  const delayMs = retryDelayMs()
  const retryAt = delayMs === undefined ? {} : keepValidTime(new Date(nowMs + delayMs))
  return { isDead: false, failure: toItemFailure(thrown), ...retryAt }
}

/**
 * Drops an invalid time, so that the queue's retry policy decides: the server would reject the whole call,
 * with all items in it.
 */
function keepValidTime(retryAt: Time): { retryAt?: Time } {
  return Number.isNaN(new Date(retryAt).getTime()) ? {} : { retryAt }
}

/**
 * Class and stack come from the cause, if there is one; the handler's message precedes the message of the
 * cause.
 */
function describeOutcome(thrown: Dead | RetryLater): ItemFailure {
  const { cause, message, errorCode, fingerprint } = thrown
  const failure = cause === undefined ? toItemFailure(thrown) : toItemFailure(cause)
  const fullMessage = cause === undefined || !failure.message ? message : `${message}: ${failure.message}`
  return {
    ...failure,
    message: fullMessage,
    ...(errorCode !== undefined && { errorCode }),
    ...(fingerprint !== undefined && { fingerprint }),
  }
}
