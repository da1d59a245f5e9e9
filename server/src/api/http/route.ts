import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject, TSchema } from 'typebox'
import type { ApiContext } from '../context.ts'
import type { Caller } from './authorize.ts'
import type { Dialect } from './dialect.ts'
import type { Permission } from './permission.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type RouteSchema = Readonly<{
  params?: TObject
  querystring?: TObject
  body?: TSchema
  /** By status. A content type other than JSON stands under `content`. */
  response: Readonly<Record<number, TSchema | MediaTypes>>
}>
export type MediaTypes = Readonly<{
  description: string
  content: Readonly<Record<string, { schema: TSchema }>>
}>

/** One row of the table of routes. */
export type Route<S extends RouteSchema = RouteSchema> = Readonly<{
  method: Method
  /** As in OpenAPI: `/api/v1/queues/{name}`. */
  path: string
  permission: Permission
  /** What is needed as well when the body asks for more than the path says. */
  alsoNeeds?: (request: FastifyRequest) => Permission | undefined
  /** One line, in OpenAPI and in the docs. */
  summary: string
  tag: string
  dialect: Dialect
  schema: S
  /** Called so often that a log line per request would cost more than the request. */
  isHot?: boolean
  /** An answer that takes longer is logged. Default 1,000; Infinity for those that wait on purpose. */
  slowMs?: number
  /** Less than the server's own bound, where a path needs less. */
  bodyBytesMax?: number
  /** A request without a body is one with an empty object. */
  isBodyOptional?: boolean
  /** What OpenAPI says beside the schema, which is what requests are checked by. */
  described?: Described
  handler: Handler<S>
}>

export type Described = Readonly<{ headers?: TObject; body?: MediaTypes }>

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

/** The body for status 200, or the reply once it was sent. */
type Answer<S extends RouteSchema> =
  | (S['response'][200] extends TSchema ? Static<S['response'][200]> : never)
  | FastifyReply

declare module 'fastify' {
  interface FastifyContextConfig {
    row?: Route
  }
  interface FastifyRequest {
    /** Null for a path that is not in the table. */
    route: Route | null
    caller: Caller
  }
}

/** Types the handler by its schema; the table then holds routes of all shapes. */
export function route<const S extends RouteSchema>(row: Route<S>): Route {
  return row as unknown as Route
}
