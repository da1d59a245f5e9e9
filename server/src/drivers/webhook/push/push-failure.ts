/** Why a push failed, in the terms of the failure history. */
import { STATUS_CODES } from 'node:http'
import type { PushErrorKind, PushFailure } from '../../../core/webhook/attempt.ts'

/** The reasons for which this server itself ends a push. */
export class PushTimeoutError extends Error {
  override readonly name = 'PushTimeoutError'
  readonly code: 'PUSH_TIMEOUT' | 'HEADERS_TIMEOUT'
  constructor(code: 'PUSH_TIMEOUT' | 'HEADERS_TIMEOUT', message: string) {
    super(message)
    this.code = code
  }
}

type Rule = Readonly<{ kind: PushErrorKind; codes: RegExp; errorClass: string; sentence: string }>

/** The first rule that matches the code of an error applies. `{host}` is the host and port of the URL. */
const rules: readonly Rule[] = [
  {
    kind: 'timeout',
    codes: /^(?:UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/,
    errorClass: 'TimeoutError',
    sentence: 'the connection to {host} was not open in time',
  },
  {
    kind: 'timeout',
    codes: /^UND_ERR_(?:HEADERS|BODY)_TIMEOUT$/,
    errorClass: 'TimeoutError',
    sentence: '{host} did not respond in time',
  },
  {
    kind: 'refused',
    codes: /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EHOSTDOWN|ENETDOWN|EACCES|EPERM)$/,
    errorClass: 'ConnectionError',
    sentence: '{host} could not be connected to',
  },
  {
    kind: 'tls',
    codes:
      /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|EPROTO$|HOSTNAME_MISMATCH)/,
    errorClass: 'TlsError',
    sentence: 'the TLS connection to {host} failed',
  },
  {
    kind: 'reset',
    codes:
      /^(?:ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED|UND_ERR_INFO|ERR_HTTP2_STREAM_ERROR|ERR_HTTP2_SESSION_ERROR|ERR_HTTP2_STREAM_CANCEL|ERR_HTTP2_GOAWAY_SESSION)$/,
    errorClass: 'ConnectionError',
    sentence: '{host} closed the connection before its response was complete',
  },
  {
    kind: 'protocol',
    codes: /^UND_ERR_HEADERS_OVERFLOW$/,
    errorClass: 'ProtocolError',
    sentence: 'the headers of the response of {host} were too large',
  },
  {
    kind: 'protocol',
    codes: /^UND_ERR_INVALID_ARG$/,
    errorClass: 'ProtocolError',
    sentence: 'the request could not be created',
  },
]

const otherRule: Rule = {
  kind: 'protocol',
  codes: /^/,
  errorClass: 'ProtocolError',
  sentence: 'the response of {host} was not valid HTTP',
}

/** DNS errors of c-ares and of `getaddrinfo` name the call that failed. */
const dnsCalls = /^(?:getaddrinfo|query)/

export function describeStatusFailure(status: number, retryAfter: string | null): PushFailure {
  const name = STATUS_CODES[status]
  const answer = `the receiver answered ${status}${name === undefined ? '' : ` ${name}`}`
  const isRedirect = status >= 300 && status < 400
  return {
    kind: isRedirect ? 'redirect' : 'status',
    errorClass: isRedirect ? 'HttpRedirectError' : 'HttpStatusError',
    errorCode: `http_${status}`,
    message: isRedirect ? `${answer}, and redirects are not followed` : answer,
    retryAfter,
  }
}

export function describeError(error: unknown, host: string): PushFailure {
  const cause = unwrap(error)
  const code = readText(cause, 'code') ?? cause.name
  const failure = (kind: PushErrorKind, errorClass: string, errorCode: string, message: string) => ({
    kind,
    errorClass,
    errorCode,
    message,
    retryAfter: null,
  })
  if (code === 'FORBIDDEN_ADDRESS') {
    return failure(
      'forbidden-address',
      'ForbiddenAddressError',
      code,
      `a push must not go there: ${cause.message}`,
    )
  }
  if (code === 'PUSH_TIMEOUT' || code === 'HEADERS_TIMEOUT') {
    return failure('timeout', 'TimeoutError', code, cause.message)
  }
  if (code === 'ABORT_ERR') return failure('aborted', 'AbortedError', 'ABORTED', 'this server ended the push')
  if (dnsCalls.test(readText(cause, 'syscall') ?? '')) {
    return failure('dns', 'DnsError', code, `the address of ${host} could not be found (${code})`)
  }
  const rule = rules.find(({ codes }) => codes.test(code)) ?? otherRule
  const errorCode = code === 'UND_ERR_CONNECT_TIMEOUT' ? 'CONNECT_TIMEOUT' : code
  return failure(
    rule.kind,
    rule.errorClass,
    errorCode,
    `${rule.sentence.replace('{host}', host)} (${errorCode})`,
  )
}

/** A connection that was tried at several addresses fails with the errors of all: the first one stands. */
function unwrap(error: unknown): Error {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0]
  return error instanceof Error ? error : new Error(String(error))
}

function readText(error: Error, field: 'code' | 'syscall'): string | undefined {
  const value: unknown = Reflect.get(error, field)
  return typeof value === 'string' ? value : undefined
}
