import { RedriveError, type RedriveErrorFacts } from './error.ts'
import { isQueueErrorBody, meaningOf } from './queue-error.ts'
import type { ErrorBody } from './wire.ts'

/**
 * What is known of the server's part when a call fails.
 *
 * `not-done`: nothing was done, and a later try can succeed. `lost`: it may have been done. `refused`: the
 * server decided; the same call would be refused again.
 */
export type Fate = 'not-done' | 'lost' | 'refused'

export type FailedCall = Readonly<{
  facts: RedriveErrorFacts
  fate: Fate
  /** What the server asks us to wait. */
  retryAfterMs: number
}>

/** The connection never came to be, so nothing was sent. Codes of Node; browsers do not tell. */
const refusedCodes = new Set([
  'ERR_INVALID_URL',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Answered before anything was begun, or after it was taken back. */
const notDoneCodes = new Set([
  'QUEUE_OVERLOADED',
  'CALL_TIMEOUT',
  'LEASE_TIMEOUT',
  'SHUTTING_DOWN',
  'QUEUE_SHUTTING_DOWN',
])

export function failedAnswer(status: number, body: unknown, headers: Headers): FailedCall {
  const facts = factsOf(status, body, headers.get('x-request-id') ?? '')
  const seconds = Number(headers.get('retry-after') ?? 0)
  return {
    facts,
    fate: fateOf(facts),
    retryAfterMs: Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0,
  }
}

/** No answer came, or not all of it. */
export function failedConnection(cause: unknown): FailedCall {
  const why = codeOf(cause)
  const isRefused = why !== undefined && refusedCodes.has(why)
  return {
    facts: {
      code: isRefused ? 'CONNECTION_REFUSED' : 'CONNECTION_LOST',
      status: 0,
      message: `${isRefused ? 'the server could not be reached' : 'the connection was lost before the answer'}${why === undefined ? '' : `: ${why}`}`,
      hint: isRefused
        ? 'Check the address, and that the server runs. Nothing was sent.'
        : 'What was asked for may have been done: look before you repeat it.',
      cause,
    },
    fate: why === 'ERR_INVALID_URL' ? 'refused' : isRefused ? 'not-done' : 'lost',
    retryAfterMs: 0,
  }
}

export function failedInTime(answerMsMax: number): FailedCall {
  return {
    facts: {
      code: 'ANSWER_TIMEOUT',
      status: 0,
      message: `no answer within ${answerMsMax} ms`,
      hint: 'What was asked for may have been done: look before you repeat it, or allow more time.',
    },
    fate: 'lost',
    retryAfterMs: 0,
  }
}

export function errorOf(
  { facts }: FailedCall,
  is: Readonly<{ isRetryable: boolean; isOutcomeUnknown: boolean }>,
): RedriveError {
  return new RedriveError({ ...facts, ...is })
}

function factsOf(status: number, body: unknown, requestId: string): RedriveErrorFacts {
  if (isErrorBody(body)) {
    const { code, message, hint, request_id, details = [] } = body.error
    const itemId = code.startsWith('ITEM_') ? (/\b[0-9A-Za-z]{27}\b/.exec(message)?.[0] ?? null) : null
    return { code, status, message, hint, requestId: request_id || requestId, details, itemId }
  }
  if (isQueueErrorBody(body)) {
    const message = body.message ?? body.code_text ?? `the server answered with status ${status}`
    return { ...meaningOf(status, message), status, message, requestId }
  }
  return {
    code: 'UNKNOWN',
    status,
    message: `the server answered with status ${status}`,
    hint: 'Something between you and Redrive may have answered in its place.',
    requestId,
  }
}

function fateOf({ code, status }: RedriveErrorFacts): Fate {
  if (notDoneCodes.has(code)) return 'not-done'
  // The store may have failed after it had written: only "not begun" is certain to be "not done".
  if (code === 'STORE_UNAVAILABLE') return 'lost'
  if (status === 454 || status === 429) return 'not-done'
  // Of a gateway that does not say what became of the request, or of an answer that cannot be read.
  if (code === 'UNKNOWN' && (status < 300 || [408, 502, 503, 504].includes(status))) return 'lost'
  return 'refused'
}

/** Node hides the code in causes, and in lists of causes when a name has several addresses. */
function codeOf(error: unknown, depth = 0): string | undefined {
  if (typeof error !== 'object' || error === null || depth > 5) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError) return codeOf(error.errors[0], depth + 1)
  return 'cause' in error ? codeOf(error.cause, depth + 1) : undefined
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  const { error } = body
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error
}
