import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode, KnownError } from '../../../errors.ts'
import type { Logger } from '../../../ops/log/log.ts'
import { discardBody } from '../bodies/discard-body.ts'
import type { HttpLimits } from '../connections/http-limits.ts'
import { createXid } from '../request-id.ts'
import { limitBodyBytes } from '../route.ts'
import { classifyConnectionError, classifyError } from './classify-error.ts'
import type { Dialect, FailedRequest } from './dialect.ts'
import { sendAs } from './send-as.ts'

/** The `Retry-After` header in seconds, for errors after which the same request can soon succeed. */
const retryAfter: Partial<Record<ErrorCode, string>> = {
  STORE_UNAVAILABLE: '2',
  STORE_TLS_FAILED: '2',
  SHUTTING_DOWN: '1',
  SERVER_OVERLOADED: '2',
  TOO_MANY_FAILED_ATTEMPTS: '60',
  RATE_EXCEEDED: '1',
}

export interface ErrorAnswers {
  /** Answers a failed request in its dialect, and logs errors that a person should look at. */
  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply
  /** Answers bytes that Node could not read as a request, and closes the connection. */
  answerConnection(error: NodeJS.ErrnoException, socket: Socket): void
}

export function createErrorAnswers(
  dialects: readonly Dialect[],
  limits: HttpLimits,
  log: Logger,
): ErrorAnswers {
  const fallback = dialects.at(-1)
  if (!fallback) throw new Error('a server needs at least one dialect')
  const findDialect = (path: string): Dialect =>
    dialects.find((dialect) => dialect.ownsPath(path)) ?? fallback

  return {
    answer: (error, request, reply) => {
      const failed = describeRequest(request, limits)
      const known = classifyError(error, {
        bodyBytesMax: failed.bodyBytesMax,
        isClientGone: request.raw.destroyed && !request.raw.complete,
      })
      logFailure(log, known, failed)
      const dialect = request.route?.dialect ?? findDialect(failed.path)
      const { status, reasonPhrase, contentType, headers = {}, body } = dialect.renderError(known, failed)
      if (reasonPhrase !== undefined) reply.raw.statusMessage = reasonPhrase
      const seconds = retryAfter[known.code]
      if (seconds !== undefined) reply.header('Retry-After', seconds)
      if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="redrive"')
      if (known.code === 'SHUTTING_DOWN') reply.header('Connection', 'close')
      // Fastify asks for the connection to be closed, which would reset a client that still sends.
      if (known.code === 'BODY_TOO_LARGE') reply.removeHeader('connection')
      if (known.code === 'BODY_TOO_LARGE' || known.code === 'SERVER_OVERLOADED') discardBody(request.raw)
      // Set here too: a request can fail before the onRequest hook sets these headers.
      reply.headers({ ...headers, 'X-Request-ID': request.id, 'X-Content-Type-Options': 'nosniff' })
      return sendAs(reply.code(status), contentType, body)
    },

    answerConnection: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy()
        return
      }
      const failed = { requestId: createXid(), ...readRequestLine(error), accept: undefined, bodyBytesMax: 0 }
      const known = classifyConnectionError(error, limits)
      log.debug({ code: known.code, cause: error.code, request_id: failed.requestId }, 'request refused')
      const { status, contentType, headers = {}, body } = findDialect(failed.path).renderError(known, failed)
      const head = [
        `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        `Content-Type: ${contentType}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
        `X-Request-ID: ${failed.requestId}`,
        'Connection: close',
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
      socket.end(body)
      // A client that never reads the answer must not keep the connection open.
      socket.destroySoon()
    },
  }
}

/** Reads method and path from unreadable bytes if they start like a request: the path selects the dialect. */
function readRequestLine({ rawPacket }: NodeJS.ErrnoException & { rawPacket?: unknown }): {
  method: string
  path: string
} {
  const head = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1', 0, 1_000) : ''
  const [, method = '', path = ''] = /^([!#$%&'*+.^_`|~\w-]+) (\/[^\s?]*)/.exec(head) ?? []
  return { method, path }
}

function describeRequest(request: FastifyRequest, limits: HttpLimits): FailedRequest {
  const url = request.raw.url ?? ''
  const end = url.indexOf('?')
  return {
    requestId: request.id,
    method: request.method,
    path: end === -1 ? url : url.slice(0, end),
    accept: request.headers.accept,
    bodyBytesMax: limitBodyBytes(request.route ?? {}, limits.bodyBytesMax),
  }
}

function logFailure(log: Logger, error: KnownError, { requestId, method, path }: FailedRequest): void {
  const facts = { request_id: requestId, method, path, code: error.code }
  if (error.code === 'INTERNAL') log.error({ ...facts, err: error.cause }, 'request failed')
  // A lost store and a shutdown are logged once where they are detected, not once per request.
  else if (error.status < 500 || isLoggedElsewhere(error)) log.debug(facts, error.message)
  else log.warn({ ...facts, err: error }, 'request failed')
}

function isLoggedElsewhere({ code }: KnownError): boolean {
  return code in retryAfter || code === 'QUEUE_SHUTTING_DOWN'
}
