import { KnownError } from '../../errors.ts'
import type { HttpLimits } from './http-limits.ts'

/** The part of a request that tells a client's mistake from ours. */
export type RequestState = Readonly<{ bodyBytesMax: number; isClientGone: boolean }>

/**
 * Names what went wrong by the catalogue. What the framework refuses is the client's mistake and must
 * say so; what nobody foresaw is a defect and becomes INTERNAL.
 */
export function classifyError(error: unknown, { bodyBytesMax, isClientGone }: RequestState): KnownError {
  if (error instanceof KnownError) return error
  const code = readText(error, 'code')
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new KnownError('BODY_TOO_LARGE', `the request body exceeds ${bodyBytesMax} bytes`, error)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new KnownError('UNSUPPORTED_MEDIA_TYPE', 'the Content-Type header cannot be understood', error)
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new KnownError('BAD_REQUEST', 'the body is not as long as its Content-Length says', error)
    case 'FST_ERR_BAD_URL':
      return new KnownError('BAD_REQUEST', 'the path of the URL is not properly encoded', error)
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new KnownError('URL_TOO_LONG', 'a part of the path is too long', error)
  }
  if (isClientGone) return new KnownError('BAD_REQUEST', 'the request ended before it was complete', error)
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : 500
  if (typeof status === 'number' && status >= 400 && status < 500 && code?.startsWith('FST_')) {
    return new KnownError('BAD_REQUEST', readText(error, 'message') ?? 'the request cannot be served', error)
  }
  return new KnownError('INTERNAL', 'something went wrong inside the server', error)
}

/** The same for what Node refuses before there is a request. */
export function classifyConnectionError(
  error: NodeJS.ErrnoException,
  { headerBytesMax, headersMax }: HttpLimits,
): KnownError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new KnownError('REQUEST_TIMEOUT', 'the request did not arrive in time', error)
    case 'HPE_HEADER_OVERFLOW':
      return new KnownError(
        'HEADERS_TOO_LARGE',
        `the request has more than ${headersMax} headers, or more than ${headerBytesMax} bytes of them`,
        error,
      )
    case 'HPE_INVALID_METHOD':
      return new KnownError('BAD_REQUEST', 'this is no method of HTTP', error)
    default:
      return new KnownError('BAD_REQUEST', 'this is not a readable HTTP request', error)
  }
}

function readText(error: unknown, key: 'code' | 'message'): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const value = (error as Record<string, unknown>)[key]
  return typeof value === 'string' ? value : undefined
}
