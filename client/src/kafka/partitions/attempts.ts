/**
 * The attempts of a record, and what follows from them. Pure, so that a record in Kafka and a record that
 * waits in Redrive have the same rules.
 *
 * An attempt is counted before the handler runs. A worker that crashes during an attempt reports nothing, so
 * an attempt without an outcome counts as failed when another worker takes the record.
 */

export type LastError = Readonly<{ name: string; message: string; stack: string }>

export type Attempts = Readonly<{
  /** Attempts that were started. */
  started: number
  /** Attempts that failed. One less than `started`: an attempt is in progress, or its worker crashed. */
  failed: number
  firstFailedAtMs: number
  lastFailedAtMs: number
  error: LastError | null
  /** No retry can help. */
  isPermanent: boolean
}>

export const noAttempts: Attempts = {
  started: 0,
  failed: 0,
  firstFailedAtMs: 0,
  lastFailedAtMs: 0,
  error: null,
  isPermanent: false,
}

export function startAttempt(attempts: Attempts): Attempts {
  return { ...attempts, started: attempts.failed + 1 }
}

/** The handler was stopped: the attempt does not count. */
export function abandonAttempt(attempts: Attempts): Attempts {
  return { ...attempts, started: attempts.failed }
}

export function failAttempt(
  attempts: Attempts,
  error: LastError,
  isPermanent: boolean,
  nowMs: number,
): Attempts {
  const failed = attempts.failed + 1
  return {
    started: failed,
    failed,
    firstFailedAtMs: attempts.failed === 0 ? nowMs : attempts.firstFailedAtMs,
    lastFailedAtMs: nowMs,
    error,
    isPermanent,
  }
}

/** Counts an attempt whose worker ended without an outcome. */
export function countCrash(attempts: Attempts, nowMs: number): Attempts {
  if (attempts.started === attempts.failed) return attempts
  const message = `the worker ended during attempt ${attempts.started}, without an outcome`
  return failAttempt(attempts, { name: 'WorkerCrashed', message, stack: '' }, false, nowMs)
}

export type NextStep = Readonly<
  | { kind: 'attempt' }
  /** The wait is short: only the partition of the record waits. */
  | { kind: 'wait'; untilMs: number }
  /** The wait is long: Redrive stores the record, and the partition continues. */
  | { kind: 'hand-over'; untilMs: number }
  | { kind: 'dead' }
>

export type RetryRules = Readonly<{
  /** The delay before each retry: with n delays a record is tried n + 1 times. */
  delaysMs: readonly number[]
  /** Longer waits are handed over. */
  waitMsMax: number
  canHandOver: boolean
}>

export function decideNext(attempts: Attempts, rules: RetryRules, isRedrive: boolean): NextStep {
  if (attempts.failed === 0) return { kind: 'attempt' }
  const delayMs = rules.delaysMs[attempts.failed - 1]
  if (attempts.isPermanent || delayMs === undefined) return { kind: 'dead' }
  const untilMs = attempts.lastFailedAtMs + delayMs
  if (delayMs <= rules.waitMsMax || !rules.canHandOver) return { kind: 'wait', untilMs }
  // Redrive takes the committed offset of a redriven record as the proof that it was processed, so the offset
  // must not pass the record while it waits. It returns to its letter instead, where a person decides.
  return isRedrive ? { kind: 'dead' } : { kind: 'hand-over', untilMs }
}
