import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject, TSchema } from 'typebox'
import type { ErrorCode } from '../../errors.ts'
import type { ApiContext } from '../context.ts'
import type { Dialect } from './answers/dialect.ts'
import type { BodyReader } from './bodies/body-reader.ts'
import type { Caller } from './caller.ts'
import type { AnswerKind } from './connections/capacity.ts'
import type { Permission } from './permission.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type RouteSchema = Readonly<{
  params?: TObject
  querystring?: TObject
  body?: TSchema
  /** By status. A content type other than JSON is listed under `content`. */
  response: Readonly<Record<number, TSchema | MediaTypes>>
}>
export type MediaTypes = Readonly<{
  description: string
  content: Readonly<Record<string, { schema: TSchema }>>
}>

/**
 * The largest body of a route without a reader. Such a body has ids, filters and settings, and is parsed on
 * the server's thread.
 */
export const plainBodyBytesMax = 1_000_000
/** The largest body of a route with a reader. It has space for a payload of `payloadBytesMax` in base64. */
export const largeBodyBytesMax = 32_000_000

/** The largest body that a route accepts. `serverMax` is the limit of the server. */
export function limitBodyBytes(row: Pick<Route, 'bodyBytesMax' | 'bodyReader'>, serverMax: number): number {
  const own = row.bodyBytesMax ?? (row.bodyReader === undefined ? plainBodyBytesMax : largeBodyBytesMax)
  return Math.min(own, serverMax)
}

/** One row of the route table. */
export type Route<S extends RouteSchema = RouteSchema> = Readonly<{
  method: Method
  /** In OpenAPI notation: `/api/v1/queues/{name}`. */
  path: string
  permission: Permission
  /**
   * A public route with this mark identifies the caller if the request has a credential. A credential that is
   * refused, or that cannot be checked now, is that of nobody.
   */
  isCallerOptional?: boolean
  /** A second permission that depends on the content of the request, in the same namespaces. */
  alsoNeeds?: (request: FastifyRequest) => Permission | undefined
  /** The name of the call in generated clients: `listLetters`. It never changes. */
  operationId: string
  /** For OpenAPI and the docs. The first sentence is also shown alone. */
  summary: string
  tag: string
  /**
   * The errors that its handler may answer, besides those of all routes: see `openapi/error-responses.ts`.
   */
  errors?: readonly ErrorCode[]
  dialect: Dialect
  schema: S
  /** Called so often that a log line per request would cost more than the request itself. */
  isHot?: boolean
  /** An answer that takes longer is logged. Default 1,000; Infinity for routes that wait on purpose. */
  slowMs?: number
  /**
   * The largest body. Default: `plainBodyBytesMax`, or `largeBodyBytesMax` if the route has a `bodyReader`.
   */
  bodyBytesMax?: number
  /** Reads the body instead of the schema. A large body is then read by the body thread. */
  bodyReader?: BodyReader
  /** Set if the answer needs much memory until it is sent. The number of such answers is limited. */
  answerKind?: AnswerKind
  /** A request without a body is treated like a request with an empty object. */
  isBodyOptional?: boolean
  /** Additions to OpenAPI that are not validated. Requests are validated against `schema` only. */
  openapi?: OpenapiAdditions
  handler: Handler<S>
}>

export type OpenapiAdditions = Readonly<{ headers?: TObject; body?: MediaTypes }>

export type Handler<S extends RouteSchema> = (
  request: Call<S>,
  reply: FastifyReply,
  context: ApiContext,
) => Answer<S> | Promise<Answer<S>>

type Call<S extends RouteSchema> = FastifyRequest<{
  Params: PartOf<S, 'params'>
  Querystring: PartOf<S, 'querystring'>
  Body: PartOf<S, 'body'>
}>

type PartOf<S extends RouteSchema, P extends 'params' | 'querystring' | 'body'> = S[P] extends TSchema
  ? Static<S[P]>
  : unknown

/** The body for status 200, or the reply after it was sent. */
type Answer<S extends RouteSchema> =
  | (S['response'][200] extends TSchema ? Static<S['response'][200]> : never)
  | FastifyReply

declare module 'fastify' {
  interface FastifyContextConfig {
    row?: Route
  }
  interface FastifyRequest {
    /** Null for a path that no route matches. */
    route: Route | null
    caller: Caller
  }
}

/**
 * A route whose literal method, path and schema stay in its type. `server/test/wire-types.ts` compares them
 * with the types of the client.
 */
export type TypedRoute<M extends Method, P extends string, S extends RouteSchema> = Omit<
  Route,
  'method' | 'path' | 'schema'
> &
  Readonly<{ method: M; path: P; schema: S }>

/** Derives the handler's types from its schema, then erases them, so that one table can hold all routes. */
export function route<const S extends RouteSchema, const M extends Method, const P extends string>(
  row: Route<S> & Readonly<{ method: M; path: P }>,
): TypedRoute<M, P, S> {
  return row as unknown as TypedRoute<M, P, S>
}
