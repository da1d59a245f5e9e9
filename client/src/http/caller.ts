/**
 * Sends a request, and repeats it if that is safe.
 *
 * The kind of failure decides (see `FailureKind`). A call that was not done is always repeated. A call whose
 * answer was lost is repeated only if executing it twice is harmless. A refused call is never repeated.
 */

import {
  describeFailedAnswer,
  describeFailedConnection,
  describeTimeout,
  type FailedCall,
  toError,
} from '../letters/failed-call.ts'
import { type Backoff, computeBackoffMs } from './backoff.ts'
import { type Clock, sleep } from './clock.ts'

export type CallOptions = Readonly<{
  /** Ends the call, including repeats and waits between them. The call rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** How long each answer may take. */
  answerMsMax?: number | undefined
  /** How often the call is repeated if that is safe. 0: never. */
  retriesMax?: number | undefined
}>

export type Request = Readonly<{
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  path: string
  body?: unknown
  headers?: Readonly<Record<string, string>>
  /** Executing the call twice has the same effect as once, so it is repeated if the answer is lost. */
  isRepeatable: boolean
  /** Statuses that count as success. Default: 200. */
  successStatuses?: readonly number[]
  /** How long the server may wait before it answers, in addition to `answerMsMax`. */
  waitMs?: number
  /** Retryable error codes that are reported to the caller instead of repeating the call. */
  finalCodes?: readonly string[]
}>

export type Answer = Readonly<{ status: number; body: unknown; headers: Headers }>

export type Caller = (request: Request, options?: CallOptions) => Promise<Answer>

export type CallerParts = Readonly<{
  base: string
  apiKey: string | undefined
  fetch: typeof fetch
  clock: Clock
  random: () => number
  answerMsMax: number
  retriesMax: number
  backoff: Backoff
}>

/** Upper bound for the wait that a server can request with Retry-After. */
const retryAfterMsMax = 30_000

export function createCaller(parts: CallerParts): Caller {
  return async (request, options = {}) => {
    const { signal, retriesMax = parts.retriesMax } = options
    let isOutcomeUnknown = false
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted()
      const result = await send(parts, request, options)
      if ('status' in result) return result
      // Status 500 is a defect of the server: how far the call got is unknown.
      isOutcomeUnknown ||= result.kind === 'lost' || result.facts.status === 500
      const isRetryable = result.kind === 'not-done' || (result.kind === 'lost' && request.isRepeatable)
      const isFinal = tries > retriesMax || request.finalCodes?.includes(result.facts.code)
      if (!isRetryable || isFinal) throw toError(result, { isRetryable, isOutcomeUnknown })
      const delayMs = computeBackoffMs(parts.backoff, tries, parts.random)
      await sleep(parts.clock, Math.max(delayMs, Math.min(result.retryAfterMs, retryAfterMsMax)), signal)
    }
  }
}

/** Rejects only if the caller's signal aborts. */
async function send(
  parts: CallerParts,
  request: Request,
  { signal, answerMsMax = parts.answerMsMax }: CallOptions,
): Promise<Answer | FailedCall> {
  const { clock } = parts
  const sent = request.body === undefined ? {} : { body: JSON.stringify(request.body) }
  // One controller for both the timeout and the caller's signal: the listener is removed at the end, so a
  // long-lived signal does not collect listeners.
  const controller = new AbortController()
  const onAbort = (): void => controller.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  let isTimedOut = false
  const timer = clock.setTimer(
    () => {
      isTimedOut = true
      controller.abort()
    },
    answerMsMax + (request.waitMs ?? 0),
  )
  try {
    const answer = await parts.fetch(parts.base + request.path, {
      method: request.method,
      headers: buildHeaders(request, parts.apiKey),
      signal: controller.signal,
      ...sent,
    })
    const { status, headers } = answer
    const body = parseJson(await answer.text())
    const isSuccess = (request.successStatuses ?? [200]).includes(status)
    if (body !== undefined && isSuccess) return { status, body, headers }
    return describeFailedAnswer(status, body, headers)
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    return isTimedOut ? describeTimeout(answerMsMax) : describeFailedConnection(error)
  } finally {
    clock.clearTimer(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

export function buildHeaders(request: Request, apiKey: string | undefined): Record<string, string> {
  return {
    Accept: 'application/json',
    ...(request.body !== undefined && { 'Content-Type': 'application/json' }),
    ...(apiKey !== undefined && { Authorization: `Bearer ${apiKey}` }),
    ...request.headers,
  }
}

/** Undefined if the text is not JSON: then the answer is not from Redrive, and its status decides. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
