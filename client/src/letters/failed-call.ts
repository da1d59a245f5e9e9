import { RedriveError, type RedriveErrorFacts } from '../http/error.ts'
import { identifyQueueError, isQueueErrorBody } from '../queues/queue-error.ts'
import type { ErrorBody } from '../wire.ts'

/**
 * How a call failed, as far as the client knows.
 *
 * - `not-done`: the server did not execute the call, and a later try can succeed.
 * - `lost`: the answer was lost, so the server may have executed the call.
 * - `refused`: the server rejected the call, and would reject the same call again.
 */
export type FailureKind = 'not-done' | 'lost' | 'refused'

export type FailedCall = Readonly<{
  facts: RedriveErrorFacts
  kind: FailureKind
  /** How long the server asks the client to wait before the next try. */
  retryAfterMs: number
}>

/** Node's error codes for a connection that was never established. Browsers do not expose them. */
const refusedCodes = new Set([
  'ERR_INVALID_URL',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Errors that the server returns before it starts the work, or after it rolled the work back. */
const notDoneCodes = new Set([
  'QUEUE_OVERLOADED',
  'CALL_TIMEOUT',
  'LEASE_TIMEOUT',
  'SHUTTING_DOWN',
  'QUEUE_SHUTTING_DOWN',
])

export function describeFailedAnswer(status: number, body: unknown, headers: Headers): FailedCall {
  const facts = readFacts(status, body, headers.get('x-request-id') ?? '')
  const seconds = Number(headers.get('retry-after') ?? 0)
  return {
    facts,
    kind: classifyFailure(facts),
    retryAfterMs: Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0,
  }
}

/** For a call whose answer is missing or incomplete. */
export function describeFailedConnection(cause: unknown): FailedCall {
  const why = findCode(cause)
  const isRefused = why !== undefined && refusedCodes.has(why)
  return {
    facts: {
      code: isRefused ? 'CONNECTION_REFUSED' : 'CONNECTION_LOST',
      status: 0,
      message: `${isRefused ? 'the server could not be reached' : 'the connection was lost before the answer'}${why === undefined ? '' : `: ${why}`}`,
      hint: isRefused
        ? 'Check the address, and that the server is running. Nothing was sent.'
        : 'The server may have executed the call. Check before you repeat it.',
      cause,
    },
    kind: why === 'ERR_INVALID_URL' ? 'refused' : isRefused ? 'not-done' : 'lost',
    retryAfterMs: 0,
  }
}

export function describeTimeout(answerMsMax: number): FailedCall {
  return {
    facts: {
      code: 'ANSWER_TIMEOUT',
      status: 0,
      message: `no answer within ${answerMsMax} ms`,
      hint: 'The server may have executed the call. Check before you repeat it, or increase answerMsMax.',
    },
    kind: 'lost',
    retryAfterMs: 0,
  }
}

export function toError(
  { facts }: FailedCall,
  flags: Readonly<{ isRetryable: boolean; isOutcomeUnknown: boolean }>,
): RedriveError {
  return new RedriveError({ ...facts, ...flags })
}

function readFacts(status: number, body: unknown, requestId: string): RedriveErrorFacts {
  if (isErrorBody(body)) {
    const { code, message, hint, request_id, details = [] } = body.error
    const itemId = code.startsWith('ITEM_') ? (/\b[0-9A-Za-z]{27}\b/.exec(message)?.[0] ?? null) : null
    return { code, status, message, hint, requestId: request_id || requestId, details, itemId }
  }
  if (isQueueErrorBody(body)) {
    const message = body.message ?? body.code_text ?? `the server answered with status ${status}`
    return { ...identifyQueueError(status, message), status, message, requestId }
  }
  return {
    code: 'UNKNOWN',
    status,
    message: `the server answered with status ${status}`,
    hint: 'The answer is not from Redrive. Check for a proxy or gateway between client and server.',
    requestId,
  }
}

function classifyFailure({ code, status }: RedriveErrorFacts): FailureKind {
  if (notDoneCodes.has(code)) return 'not-done'
  // The store may have failed after the write reached it, so the outcome is unknown.
  if (code === 'STORE_UNAVAILABLE' || code === 'STORE_TLS_FAILED') return 'lost'
  if (status === 454 || status === 429) return 'not-done'
  // An unreadable answer, or one from a gateway: neither tells whether the server executed the call.
  if (code === 'UNKNOWN' && (status < 300 || [408, 502, 503, 504].includes(status))) return 'lost'
  return 'refused'
}

/** Node nests the code in `cause`, and in an AggregateError if the host name has several addresses. */
function findCode(error: unknown, depth = 0): string | undefined {
  if (typeof error !== 'object' || error === null || depth > 5) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError) return findCode(error.errors[0], depth + 1)
  return 'cause' in error ? findCode(error.cause, depth + 1) : undefined
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  const { error } = body
  return typeof error === 'object' && error !== null && 'code' in error && 'message' in error
}
