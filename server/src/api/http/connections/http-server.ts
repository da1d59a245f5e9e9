import { type FastifyInstance, type FastifyReply, fastify, LogController } from 'fastify'
import { KnownError } from '../../../errors.ts'
import type { Logger } from '../../../ops/log/log.ts'
import type { AnsweredRequest } from '../../../ops/metrics/answered-requests.ts'
import { createErrorAnswers } from '../answers/answer-error.ts'
import type { Dialect } from '../answers/dialect.ts'
import { refuseAmbiguous } from '../bodies/refuse-ambiguous.ts'
import { chooseRequestId } from '../request-id.ts'
import { createOverloadedError } from './capacity.ts'
import type { Certificate } from './certificate.ts'
import { type ConnectionReserve, createConnectionReserve, isHealthPath } from './connection-reserve.ts'
import { createDrain, type Drain } from './drain.ts'
import type { HttpLimits } from './http-limits.ts'
import { refuseNonLocal } from './local-only.ts'

export type HttpServerOptions = Readonly<{
  limits: HttpLimits
  /** Asked in this order about a path that no route matches; the last dialect answers if no other does. */
  dialects: readonly Dialect[]
  /** Protected mode: accept requests from this machine only. */
  isLocalOnly: boolean
  /** The server then speaks HTTPS. */
  certificate?: Certificate | undefined
  observe: (request: AnsweredRequest) => void
  log: Logger
}>

const slowMsDefault = 1_000

/** Creates an HTTP server with limits, request ids and error answers, but without routes. */
export function createHttpServer(options: HttpServerOptions): { app: FastifyInstance; drain: Drain } {
  const { limits, log } = options
  const errors = createErrorAnswers(options.dialects, limits, log)

  const http = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersMsMax,
    requestTimeout: limits.requestMsMax,
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(limits.headersMsMax / 4)),
  }
  const { certificate } = options
  const app = fastify({
    // A client that does not finish its handshake must not keep the server from stopping.
    ...(certificate === undefined
      ? { http }
      : { https: { ...http, ...certificate, minVersion: 'TLSv1.2', handshakeTimeout: 10_000 } as never }),
    requestTimeout: limits.requestMsMax,
    keepAliveTimeout: limits.keepAliveMs,
    bodyLimit: limits.bodyBytesMax,
    routerOptions: { maxParamLength: limits.urlBytesMax },
    genReqId: chooseRequestId,
    loggerInstance: hideChildren(log),
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: (error, request, reply) => {
      request.route = null
      errors.answer(error, request, reply as never)
    },
    clientErrorHandler: (error, socket) => {
      if (drain.hasBegunAnswer(socket)) socket.destroy(error)
      else errors.answerConnection(error, socket)
    },
  }) as unknown as FastifyInstance
  const drain = createDrain(app.server)
  const reserve = limitConnections(app, limits, log)

  app.removeAllContentTypeParsers()
  app.decorateRequest('route', null)
  app.decorateRequest('caller')
  app.setErrorHandler((error, request, reply) => errors.answer(error, request, reply))
  app.setNotFoundHandler((request) => {
    throw createPathNotFound(request.raw.url)
  })

  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    try {
      if (reserve.isReserved(request.raw.socket)) refuseUnlessHealth(request.raw.url ?? '', reply)
      if (drain.isStopping) throw new KnownError('SHUTTING_DOWN', 'the server is shutting down')
      if (options.isLocalOnly) refuseNonLocal(request.raw.headers)
      refuseAmbiguous(request.raw)
      checkRequestSize(request.raw.url ?? '', request.raw.rawHeaders.length / 2, limits)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  })

  app.addHook('onResponse', (request, reply, done) => {
    const { method, route } = request
    const ms = Math.round(reply.elapsedTime * 1_000) / 1_000
    const status = reply.statusCode
    const path = route?.path ?? 'unmatched'
    options.observe({ method, path, status, ms })
    const isSlow = ms > (route?.slowMs ?? slowMsDefault)
    if (isSlow) log.warn({ request_id: request.id, method, path, status, ms }, 'slow request')
    else if (route?.isHot !== true) log.debug({ request_id: request.id, method, path, status, ms }, 'request')
    done()
  })
  return { app, drain }
}

export function createPathNotFound(url: string | undefined): KnownError {
  return new KnownError('NOT_FOUND', `path ${shortenPath(url)} does not exist`)
}

/** Avoids a child logger per request, which costs more than all other logging. Log lines name the id. */
function hideChildren(log: Logger): Logger {
  const single: Logger = Object.create(log, { child: { value: () => single } })
  return single
}

function limitConnections(app: FastifyInstance, limits: HttpLimits, log: Logger): ConnectionReserve {
  const { server } = app
  const reserve = createConnectionReserve(server, limits.connectionsMax)
  // Older Node versions silently drop headers above this count. Allow one more, so that we can refuse it.
  server.maxHeadersCount = limits.headersMax + 1
  // Only after listening: running out of file descriptors must cost one connection, not the server.
  server.once('listening', () => {
    server.on('error', (error) => log.error({ err: error }, 'a connection could not be accepted'))
  })
  let lastLoggedAtMs = Number.NEGATIVE_INFINITY
  server.on('drop', () => {
    const nowMs = performance.now()
    if (nowMs - lastLoggedAtMs < 10_000) return
    lastLoggedAtMs = nowMs
    log.warn(
      { connections_max: limits.connectionsMax },
      'too many connections: new connections are closed immediately',
    )
  })
  return reserve
}

/** A reserved connection is closed after one answer, so that it is free for the next health check. */
function refuseUnlessHealth(url: string, reply: FastifyReply): void {
  reply.header('Connection', 'close')
  if (!isHealthPath(url)) throw createOverloadedError('connections')
}

function checkRequestSize(url: string, headers: number, limits: HttpLimits): void {
  if (headers > limits.headersMax) {
    throw new KnownError('HEADERS_TOO_LARGE', `the request has more than ${limits.headersMax} headers`)
  }
  if (url.length > limits.urlBytesMax) {
    throw new KnownError(
      'URL_TOO_LONG',
      `the URL has ${url.length} bytes; the limit is ${limits.urlBytesMax}`,
    )
  }
}

function shortenPath(url = ''): string {
  const path = url.split('?', 1)[0] ?? ''
  return path.length > 200 ? `${path.slice(0, 200)}…` : path
}
