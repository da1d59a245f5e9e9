import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode, KnownError } from '../../errors.ts'
import type { Logger } from '../../ops/log.ts'
import { classifyConnectionError, classifyError } from './classify-error.ts'
import type { Dialect, FailedRequest } from './dialect.ts'
import { discardBody } from './discard-body.ts'
import type { HttpLimits } from './http-limits.ts'
import { createXid } from './request-id.ts'
import { sendAs } from './send-as.ts'

/** In seconds. Said where the same request can succeed a little later. */
const retryAfter: Partial<Record<ErrorCode, string>> = { STORE_UNAVAILABLE: '2', SHUTTING_DOWN: '1' }

export interface ErrorAnswers {
  /** Answers a failed request in its dialect, and logs what a person should look at. */
  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply
  /** Answers what never became a request, and closes the connection. */
  answerConnection(error: NodeJS.ErrnoException, socket: Socket): void
}

export function createErrorAnswers(
  dialects: readonly Dialect[],
  limits: HttpLimits,
  log: Logger,
): ErrorAnswers {
  const fallback = dialects.at(-1)
  if (!fallback) throw new Error('a server needs a dialect')
  const dialectFor = (path: string): Dialect => dialects.find((dialect) => dialect.ownsPath(path)) ?? fallback

  return {
    answer: (error, request, reply) => {
      const failed = describeRequest(request, limits)
      const known = classifyError(error, {
        bodyBytesMax: failed.bodyBytesMax,
        isClientGone: request.raw.destroyed && !request.raw.complete,
      })
      logFailure(log, known, failed)
      const dialect = request.route?.dialect ?? dialectFor(failed.path)
      const { status, reasonPhrase, contentType, headers = {}, body } = dialect.renderError(known, failed)
      if (reasonPhrase !== undefined) reply.raw.statusMessage = reasonPhrase
      const seconds = retryAfter[known.code]
      if (seconds !== undefined) reply.header('Retry-After', seconds)
      if (known.code === 'SHUTTING_DOWN') reply.header('Connection', 'close')
      if (known.code === 'BODY_TOO_LARGE') {
        // The framework would close the connection at once.
        reply.removeHeader('connection')
        discardBody(request.raw)
      }
      // Again, for what fails before the hook that sets them.
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
      const { status, contentType, headers = {}, body } = dialectFor(failed.path).renderError(known, failed)
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
      // Whoever still sends must not hold the connection open by not reading.
      socket.destroySoon()
    },
  }
}

/** What Node could not read may still begin as a request does: then its path says whose it is. */
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
    bodyBytesMax: Math.min(request.route?.bodyBytesMax ?? limits.bodyBytesMax, limits.bodyBytesMax),
  }
}

function logFailure(log: Logger, error: KnownError, { requestId, method, path }: FailedRequest): void {
  const facts = { request_id: requestId, method, path, code: error.code }
  if (error.code === 'INTERNAL') log.error({ ...facts, err: error.cause }, 'request failed')
  // Said once by what watches the store and the stop, not once per request.
  else if (error.status < 500 || error.code in retryAfter) log.debug(facts, error.message)
  else log.warn({ ...facts, err: error }, 'request failed')
}
