import { KnownError } from '../../../errors.ts'
import type { HttpLimits } from '../connections/http-limits.ts'

/** The facts about a request that distinguish a client's mistake from a defect of the server. */
export type RequestState = Readonly<{ bodyBytesMax: number; isClientGone: boolean }>

/**
 * Translates any error into an error of the catalogue. Fastify's refusals are the client's mistakes and stay
 * client errors; every unexpected error is a defect and becomes INTERNAL.
 */
export function classifyError(error: unknown, { bodyBytesMax, isClientGone }: RequestState): KnownError {
  if (error instanceof KnownError) return error
  const code = readText(error, 'code')
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new KnownError(
        'BODY_TOO_LARGE',
        `the request body exceeds the limit of ${bodyBytesMax} bytes`,
        error,
      )
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new KnownError('UNSUPPORTED_MEDIA_TYPE', 'the Content-Type header is malformed', error)
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new KnownError('BAD_REQUEST', 'the length of the body differs from its Content-Length', error)
    case 'FST_ERR_BAD_URL':
      return new KnownError('BAD_REQUEST', 'the path of the URL contains an invalid percent-encoding', error)
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new KnownError('URL_TOO_LONG', 'a segment of the path is too long', error)
  }
  if (isClientGone) {
    return new KnownError('BAD_REQUEST', 'the client disconnected before the request was complete', error)
  }
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : 500
  if (typeof status === 'number' && status >= 400 && status < 500 && code?.startsWith('FST_')) {
    return new KnownError('BAD_REQUEST', readText(error, 'message') ?? 'the request is invalid', error)
  }
  return new KnownError('INTERNAL', 'an unexpected error occurred in the server', error)
}

/** Translates the errors that Node reports before a request exists. */
export function classifyConnectionError(
  error: NodeJS.ErrnoException,
  { headerBytesMax, headersMax, requestMsMax }: HttpLimits,
): KnownError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT': {
      const message = `the request did not arrive within ${requestMsMax / 1_000} seconds`
      return new KnownError('REQUEST_TIMEOUT', message, error)
    }
    case 'HPE_HEADER_OVERFLOW': {
      const message = `the request has more than ${headersMax} headers or ${headerBytesMax} bytes of headers`
      return new KnownError('HEADERS_TOO_LARGE', message, error)
    }
    case 'HPE_INVALID_METHOD':
      return new KnownError('BAD_REQUEST', 'the request method is not an HTTP method', error)
    default:
      return new KnownError('BAD_REQUEST', 'the request is not valid HTTP', error)
  }
}

function readText(error: unknown, key: 'code' | 'message'): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const value = (error as Record<string, unknown>)[key]
  return typeof value === 'string' ? value : undefined
}
