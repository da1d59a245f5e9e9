import type { FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { KnownError } from '../../../errors.ts'

/** The facts about a failed request that are known at every stage of its processing. */
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
  /** For statuses without a standard reason phrase. */
  reasonPhrase?: string
  contentType: string
  headers?: Readonly<Record<string, string>>
  body: string | Uint8Array
}>

/**
 * A family of paths with its own body and error formats. All dialects share one catalogue of errors, one set
 * of limits and one list of permissions.
 */
export interface Dialect {
  readonly name: string
  /**
   * Whether this dialect answers for a path that no route matches. The first dialect that returns true does.
   */
  ownsPath(path: string): boolean
  /**
   * May choose another status than the catalogue's. The server adds `Retry-After`, `Allow` and the request
   * id.
   */
  renderError(error: KnownError, request: FailedRequest): RenderedError
  /** Called before the body is read. Throws a KnownError if the request cannot be read or answered. */
  prepare?(request: FastifyRequest): void
  /** Called before the body is parsed. Throws a KnownError if its Content-Type is not supported. */
  checkMediaType?(request: FastifyRequest): void
  /** Parses the body into the value that its schema describes. Throws a KnownError if it is unreadable. */
  parseBody(bytes: Buffer): unknown
  /** The dialect validates bodies itself; the schemas of its routes are documentation only. */
  readonly hasOwnBodyChecks?: boolean
  /** Reads the code for programs from a rendered error, for OpenAPI. */
  readErrorCode(body: string): string
  /** The shape of its errors, for OpenAPI. */
  readonly errorSchema: TSchema
  readonly errorContentType: string
}
