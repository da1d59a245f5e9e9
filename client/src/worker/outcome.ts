import { failureOf, type ItemFailure } from '../item-failure.ts'
import type { Time } from '../time.ts'

type OutcomeOptions = Readonly<{
  /** A short code of your own, to find and count dead letters by. */
  reason?: string
  /** What went wrong. It becomes the failure that is recorded. */
  cause?: unknown
}>

/** Thrown by a handler: try again, but not before then. */
export class RetryLater extends Error {
  readonly reason: string | undefined
  readonly at: Time | undefined
  readonly afterMs: number | undefined

  constructor(message: string, when: Readonly<{ at: Time } | { afterMs: number }> & OutcomeOptions) {
    super(message, 'cause' in when ? { cause: when.cause } : undefined)
    this.name = 'RetryLater'
    this.reason = when.reason
    this.at = 'at' in when ? when.at : undefined
    this.afterMs = 'afterMs' in when ? when.afterMs : undefined
  }
}

/** Thrown by a handler: no retry can help. */
export class Dead extends Error {
  readonly reason: string | undefined

  constructor(message: string, options: OutcomeOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'Dead'
    this.reason = options.reason
  }
}

/** How an item is given back. */
export type GivenBack = Readonly<{ retryAt?: Time; isDead: boolean; failure: ItemFailure | null }>

export function givenBack(
  thrown: unknown,
  nowMs: number,
  retryDelayMs: () => number | undefined = () => undefined,
): GivenBack {
  if (thrown instanceof Dead) return { isDead: true, failure: failureWith(thrown) }
  if (thrown instanceof RetryLater) {
    const { at, afterMs = 0 } = thrown
    return { isDead: false, failure: failureWith(thrown), ...whenReadable(at ?? new Date(nowMs + afterMs)) }
  }
  const delayMs = retryDelayMs()
  const retryAt = delayMs === undefined ? {} : whenReadable(new Date(nowMs + delayMs))
  return { isDead: false, failure: failureOf(thrown), ...retryAt }
}

/** What is no time would have the server refuse the items of the same call, too: then the queue decides. */
function whenReadable(retryAt: Time): { retryAt?: Time } {
  return Number.isNaN(new Date(retryAt).getTime()) ? {} : { retryAt }
}

/** The cause tells the class and the stack; the handler's own words come first. */
function failureWith(thrown: Dead | RetryLater): ItemFailure {
  const { cause, message, reason } = thrown
  const failure = cause === undefined ? failureOf(thrown) : failureOf(cause)
  const words = cause === undefined || !failure.message ? message : `${message}: ${failure.message}`
  return { ...failure, message: words, ...(reason !== undefined && { reason }) }
}
