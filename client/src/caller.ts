/**
 * Sends one request, and repeats it where that does no harm.
 *
 * A call that failed is in one of three states (see `Fate`). Not done: every call is repeated. Lost, so
 * that it may have been done: only calls that may be done twice are. Refused: none is.
 */
import { type Backoff, backoffMs } from './backoff.ts'
import { type Clock, rest } from './clock.ts'
import { errorOf, type FailedCall, failedAnswer, failedConnection, failedInTime } from './failed-call.ts'

export type CallOptions = Readonly<{
  /** Ends the call, its repeats and its rests. The call then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** How long each answer may take. */
  answerMsMax?: number | undefined
  /** How often the call is repeated where that does no harm. 0: never. */
  retriesMax?: number | undefined
}>

export type Request = Readonly<{
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  body?: unknown
  headers?: Readonly<Record<string, string>>
  /** Whether it does no harm when the server does it twice. */
  mayBeDoneTwice: boolean
  /** Statuses that are answers. Default: 200. */
  answers?: readonly number[]
  /** How long the server itself waits before it answers. */
  waitMs?: number
  /** Codes of "try again" that the caller wants to hear of instead. */
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

/** A server that asks for more patience than this is asked again anyway. */
const retryAfterMsMax = 30_000

export function createCaller(parts: CallerParts): Caller {
  return async (request, options = {}) => {
    const { signal, retriesMax = parts.retriesMax } = options
    let isOutcomeUnknown = false
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted()
      const result = await send(parts, request, options)
      if ('status' in result) return result
      // 500 is a defect of the server: nobody knows how far it had come.
      isOutcomeUnknown ||= result.fate === 'lost' || result.facts.status === 500
      const isRetryable = result.fate === 'not-done' || (result.fate === 'lost' && request.mayBeDoneTwice)
      const isFinal = tries > retriesMax || request.finalCodes?.includes(result.facts.code)
      if (!isRetryable || isFinal) throw errorOf(result, { isRetryable, isOutcomeUnknown })
      const restMs = backoffMs(parts.backoff, tries, parts.random)
      await rest(parts.clock, Math.max(restMs, Math.min(result.retryAfterMs, retryAfterMsMax)), signal)
    }
  }
}

/** Rejects only when the caller's signal aborts. */
async function send(
  parts: CallerParts,
  request: Request,
  { signal, answerMsMax = parts.answerMsMax }: CallOptions,
): Promise<Answer | FailedCall> {
  const { clock } = parts
  const sent = request.body === undefined ? {} : { body: JSON.stringify(request.body) }
  // One of our own for both reasons to end, so that nothing stays on a signal that outlives the call.
  const ending = new AbortController()
  const onAbort = (): void => ending.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  let isTooLate = false
  const timer = clock.setTimer(
    () => {
      isTooLate = true
      ending.abort()
    },
    answerMsMax + (request.waitMs ?? 0),
  )
  try {
    const answer = await parts.fetch(parts.base + request.path, {
      method: request.method,
      headers: headersOf(request, parts.apiKey),
      signal: ending.signal,
      ...sent,
    })
    const { status, headers } = answer
    const body = parse(await answer.text())
    if (body !== undefined && (request.answers ?? [200]).includes(status)) return { status, body, headers }
    return failedAnswer(status, body, headers)
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    return isTooLate ? failedInTime(answerMsMax) : failedConnection(error)
  } finally {
    clock.clearTimer(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

export function headersOf(request: Request, apiKey: string | undefined): Record<string, string> {
  return {
    Accept: 'application/json',
    ...(request.body !== undefined && { 'Content-Type': 'application/json' }),
    ...(apiKey !== undefined && { Authorization: `Bearer ${apiKey}` }),
    ...request.headers,
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not ours, whatever it is: the caller tells by the status what that means.
    return undefined
  }
}
