import { create } from '@bufbuild/protobuf'
import type { KnownError } from '../../../errors.ts'
import type { FailedRequest, RenderedError } from '../../http/answers/dialect.ts'
import { ReplySchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { formatBodyLimit } from '../limits.ts'
import { createCodec } from './codec.ts'
import { Fault, statusTexts, type WireStatus } from './fault.ts'
import { contentTypes, parseFormat } from './format.ts'

const replies = createCodec(ReplySchema)

/** Renders an error as the envelope of this dialect, in the format that the client accepts. */
export function renderError(error: KnownError, request: FailedRequest): RenderedError {
  const [status, message] = chooseStatusAndMessage(error, request)
  // A request with an unsupported Accept header is answered in JSON.
  const format = parseFormat(request.accept) ?? 'json'
  const reply = create(ReplySchema, { code: status, codeText: statusTexts[status], message })
  return {
    status,
    reasonPhrase: statusTexts[status],
    contentType: contentTypes[format],
    body: replies.write(reply, format),
  }
}

function chooseStatusAndMessage(
  error: KnownError,
  { method, path, bodyBytesMax }: FailedRequest,
): [WireStatus, string] {
  if (error instanceof Fault) return [error.wireStatus, error.message]
  switch (error.code) {
    case 'METHOD_NOT_ALLOWED':
      return [400, describeWrongMethod(method)]
    case 'NOT_FOUND':
      return method === 'POST' ? [501, `no such method; ${path}`] : [400, describeWrongMethod(method)]
    case 'BODY_TOO_LARGE':
      return [400, `request body exceeds ${formatBodyLimit(bodyBytesMax)} limit`]
    case 'CONTENT_UNREADABLE':
    case 'UNSUPPORTED_MEDIA_TYPE':
      return [455, error.message]
    case 'CREDENTIAL_REFUSED':
    case 'API_KEY_NOT_FOUND':
      return [401, error.message]
    // Without a credential the caller is the user `anonymous`, so it is not missing in this protocol.
    case 'CREDENTIAL_MISSING':
    case 'ACCESS_DENIED':
      return [403, 'access denied']
    case 'IDENTITY_PROVIDER_UNAVAILABLE':
      return [454, `${error.message}; try again later`]
    case 'TOO_MANY_FAILED_ATTEMPTS':
    case 'RATE_EXCEEDED':
      return [429, error.message]
    case 'NAMESPACE_NOT_FOUND':
    case 'USER_NOT_FOUND':
    case 'ROLE_NOT_FOUND':
    case 'ROLE_BINDING_NOT_FOUND':
      return [453, error.message]
    case 'CROSS_SITE_REFUSED':
    case 'QUOTA_EXCEEDED':
    case 'HOST_REFUSED':
      return [403, error.message]
    case 'SHUTTING_DOWN':
      return [453, 'service is shutting down']
    case 'QUEUE_SHUTTING_DOWN':
      return [453, 'queue is shutting down']
    case 'QUEUE_OVERLOADED':
      return [454, 'queue is overloaded; try again later']
    case 'SERVER_OVERLOADED':
      return [454, `${error.message}; try again later`]
    case 'LEASE_TIMEOUT':
      return [454, 'request timeout; no items are in the queue, try again']
    case 'CALL_TIMEOUT':
      return [454, 'request timeout; the queue is busy, try again']
    case 'CLIENT_ID_BUSY':
      return [400, 'duplicate client id; a client cannot make multiple leased requests to the same queue']
    case 'STORE_UNAVAILABLE':
    case 'STORE_TLS_FAILED':
    case 'STORE_FULL':
      return [454, exactPaths.has(path) ? tryAgain : `${tryAgain}; ${error.publicMessage}`]
    case 'LOCK_LOST':
    case 'ACCESS_CHANGED':
      return [454, tryAgain]
    default:
      return error.status < 500 ? [400, error.publicMessage] : [500, 'Internal Error']
  }
}

/** The protocol defines the whole message of these calls. All others have the reason after it. */
const exactPaths = new Set(['/v1/queue.complete', '/v1/queue.retry'])

export const tryAgain = 'internal error, try your request again'

function describeWrongMethod(method: string): string {
  return `http method '${method}' not allowed; only POST`
}
