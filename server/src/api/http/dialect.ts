import type { FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { KnownError } from '../../errors.ts'

/** What is known of a request when it fails, whatever stage it had reached. */
export type FailedRequest = Readonly<{
  requestId: string
  method: string
  /** Without the query. */
  path: string
  accept: string | undefined
  bodyBytesMax: number
}>

export type RenderedError = Readonly<{
  status: number
  /** For statuses that HTTP has no words for. */
  reasonPhrase?: string
  contentType: string
  headers?: Readonly<Record<string, string>>
  body: string | Uint8Array
}>

/**
 * One of the ways in which the server speaks HTTP. Each has its own bodies and errors; the catalogue
 * of errors, the limits and the permissions are the same for all.
 */
export interface Dialect {
  readonly name: string
  /** Whether a path that no route matches is this dialect's to refuse. The first dialect that says so does. */
  ownsPath(path: string): boolean
  /** May answer with another status than the catalogue's. `Retry-After`, `Allow` and the request id are set for it. */
  renderError(error: KnownError, request: FailedRequest): RenderedError
  /** Called before the body is read. Throws a KnownError for what cannot be read or answered. */
  prepare?(request: FastifyRequest): void
  /** The body as what the schema describes. Throws a KnownError for what cannot be read. */
  parseBody(bytes: Buffer, request: FastifyRequest): unknown
  /** Bodies are checked where they are read; their schemas only describe them. */
  readonly hasOwnBodyChecks?: boolean
  /** The shape of its errors, for OpenAPI. */
  readonly errorSchema: TSchema
  readonly errorContentType: string
}
