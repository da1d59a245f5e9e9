import { METHODS } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { KnownError } from '../../errors.ts'
import { takeTurn } from '../../turns.ts'
import { threadBytesMin } from '../body-thread/body-thread.ts'
import type { ApiContext } from '../context.ts'
import type { Dialect } from './answers/dialect.ts'
import { takeCollectedBody } from './bodies/collect-body.ts'
import type { Caller } from './caller.ts'
import { getCheck, getSerializer } from './compile-once.ts'
import { type Capacities, createCapacities, largeBodyBytes } from './connections/capacity.ts'
import { limitAnswer, limitBody, limitBodyRead } from './connections/limit-requests.ts'
import type { Authorize } from './permission.ts'
import { limitBodyBytes, type Route } from './route.ts'
import { scopeContext } from './scope-context.ts'
import type { RequestPart } from './validation/validate.ts'

/** The methods that a route can have, in the order in which the Allow header lists them. */
const routableMethods: readonly HTTPMethods[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
]
/** All methods that Node can read, so that every other method gets a 405. */
const methods: readonly HTTPMethods[] = [
  ...new Set([...routableMethods, ...METHODS.filter((name) => name !== 'CONNECT')]),
]

/** Registers all routes, each with its permission, limits, validation and error rendering. */
export function registerRoutes(
  app: FastifyInstance,
  routes: readonly Route[],
  context: ApiContext,
  authorize: Authorize,
): void {
  const capacities = createCapacities()
  for (const method of methods) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  for (const [dialect, own] of Map.groupBy(routes, (row) => row.dialect)) {
    app.register(async (scope) => {
      addBodyParsers(dialect, scope, context, capacities)
      for (const row of own) registerRoute(scope, row, context, authorize, capacities)
      for (const [path, rows] of Map.groupBy(own, (row) => row.path)) refuseOtherMethods(scope, path, rows)
    })
  }
}

/** Larger bodies are parsed one per turn of the event loop. */
const turnBytesMin = 32 * 1_024

function addBodyParsers(
  dialect: Dialect,
  scope: FastifyInstance,
  context: ApiContext,
  capacities: Capacities,
): void {
  const readBody = (bytes: Buffer, request: FastifyRequest): unknown => {
    dialect.checkMediaType?.(request)
    const reader = request.route?.bodyReader
    if (reader === undefined) return dialect.parseBody(bytes)
    const facts = { now: context.clock.now() }
    if (bytes.length < threadBytesMin) return reader.read(bytes, facts)
    return context.bodyThread.read(reader, bytes, facts)
  }
  scope.removeAllContentTypeParsers()
  // Fastify caches the parser only for named types, so the most frequent types are named beside `*`.
  for (const contentType of ['*', 'application/json', 'application/protobuf']) {
    scope.addContentTypeParser(contentType, { parseAs: 'buffer' }, (request, read: Buffer, done) => {
      const bytes = takeCollectedBody(request.raw) ?? read
      const parse = (): void => {
        try {
          const body = readBody(bytes, request)
          if (body instanceof Promise) body.then((read) => done(null, read), done)
          else done(null, body)
        } catch (error) {
          done(error as Error)
        }
      }
      // Only a larger body waits: a promise per request would slow every small one.
      if (bytes.length < turnBytesMin) parse()
      else if (bytes.length < largeBodyBytes) takeTurn().then(parse)
      else limitBodyRead(request.raw, bytes.length, capacities.bodyReads).then(takeTurn).then(parse, done)
    })
  }
}

function registerRoute(
  scope: FastifyInstance,
  row: Route,
  context: ApiContext,
  authorize: Authorize,
  capacities: Capacities,
): void {
  const { dialect, schema, handler } = row
  const bytesMax = limitBodyBytes(row, context.limits.bodyBytesMax)
  scope.route({
    method: row.method,
    url: toFastifyPath(row.path),
    config: { row },
    bodyLimit: bytesMax,
    schema: { ...schema },
    validatorCompiler: ({ schema: part, httpPart }) =>
      httpPart === 'body' && (dialect.hasOwnBodyChecks || row.bodyReader !== undefined)
        ? (value: unknown) => ({ value })
        : getCheck(part as never, httpPart as RequestPart),
    serializerCompiler: ({ schema: answer }) => getSerializer(answer as object),
    onRequest: (request, _reply, done) => {
      request.route = row
      let caller: Caller | Promise<Caller>
      try {
        caller = authorize(row.permission, request)
      } catch (error) {
        done(error as Error)
        return
      }
      // Most credentials are known in memory: a promise per request would slow them.
      if (caller instanceof Promise) caller.then((found) => admit(found, request, context, done), done)
      else admit(caller, request, context, done)
    },
    preParsing: (request, reply, payload, done) => {
      const limits = { capacity: capacities.bodies, bytesMax }
      limitBody(request, reply, payload as Readable, limits, (error, read) => done(error, read as never))
    },
    ...((row.isBodyOptional === true || row.bodyReader !== undefined) && {
      preValidation: (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void) => {
        try {
          if (request.body === undefined) request.body = readMissingBody(row, context)
          done()
        } catch (error) {
          done(error as Error)
        }
      },
    }),
    ...((row.alsoNeeds !== undefined || row.answerKind !== undefined) && {
      preHandler: async (request: FastifyRequest, reply: FastifyReply) => {
        const more = row.alsoNeeds?.(request)
        if (more !== undefined) await authorize(more, request)
        if (row.answerKind !== undefined) await limitAnswer(row.answerKind, reply, capacities)
      },
    }),
    handler: (request, reply) =>
      handler(
        request,
        reply,
        scopeContext(context, request.caller, row.permission, row.alsoNeeds?.(request)),
      ),
  })
}

function admit(
  caller: Caller,
  request: FastifyRequest,
  context: ApiContext,
  done: (error?: Error) => void,
): void {
  request.caller = caller
  const row = request.route
  try {
    row?.dialect.prepare?.(request)
    // Callers who may act in all namespaces use the quota of none.
    const namespaces =
      row === null || row.permission === 'public' ? null : caller.listNamespaces(row.permission)
    if (namespaces !== null) context.engine().quotas.countRequest(namespaces)
  } catch (error) {
    done(error as Error)
    return
  }
  done()
}

/** Fastify calls no parser for a request without a body. */
function readMissingBody({ isBodyOptional, bodyReader }: Route, { clock }: ApiContext): unknown {
  if (bodyReader === undefined) return {}
  return bodyReader.read(Buffer.from(isBodyOptional === true ? '{}' : ''), { now: clock.now() })
}

/** Answers 405 with an Allow header for every method that the path does not have. */
function refuseOtherMethods(scope: FastifyInstance, path: string, rows: readonly Route[]): void {
  const served = new Set<HTTPMethods>(rows.map((row) => row.method))
  if (served.has('GET')) served.add('HEAD')
  const allow = methods.filter((method) => served.has(method)).join(', ')
  const refuse = (request: FastifyRequest, reply: FastifyReply, done: (error: Error) => void): void => {
    request.route = rows[0] ?? null
    reply.header('Allow', allow)
    done(
      new KnownError(
        'METHOD_NOT_ALLOWED',
        `method ${request.method} is not allowed on ${path}; use ${allow}`,
      ),
    )
  }
  scope.route({
    method: methods.filter((method) => !served.has(method)),
    url: toFastifyPath(path),
    onRequest: refuse,
    handler: () => undefined,
  })
}

/** `/queues/{name}` → `/queues/:name`. A literal colon is doubled. */
function toFastifyPath(path: string): string {
  return path.replaceAll(':', '::').replaceAll(/\{(\w+)\}/g, ':$1')
}
