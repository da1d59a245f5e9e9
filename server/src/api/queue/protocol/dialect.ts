import type { FastifyRequest } from 'fastify'
import { readAuthorization } from '../../http/access/credentials.ts'
import type { Dialect } from '../../http/answers/dialect.ts'
import { ReplySchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { createContentError } from './fault.ts'
import { contentTypes, parseFormat } from './format.ts'
import { toJsonSchema } from './openapi-schema.ts'
import { renderError } from './render-error.ts'

/** The Queue API at `/v1/…`, in JSON and in protobuf. */
export const queueApi: Dialect = {
  name: 'queue-api',
  ownsPath: (path) => path === '/v1' || path.startsWith('/v1/'),
  errorSchema: toJsonSchema(ReplySchema),
  errorContentType: contentTypes.json,
  renderError,
  readErrorCode: (body) => String((JSON.parse(body) as { code: number }).code),
  prepare: chooseFormats,
  // The handler of each route reads the body, because it knows the type of the message.
  parseBody: (bytes) => bytes,
  hasOwnBodyChecks: true,
}

/**
 * Checks the formats of the request and of its answer before the body is read.
 *
 * Replaces the Content-Type by its plain form: Fastify refuses lists, which are valid here, and does not read
 * a body without a Content-Type.
 */
function chooseFormats(request: FastifyRequest): void {
  const { headers } = request.raw
  // Also without access control: the contract refuses every other scheme.
  if (headers.authorization !== undefined) readAuthorization(headers.authorization)
  const given = headers['content-type']
  const format = parseFormat(given)
  if (format === undefined) {
    throw createContentError(
      `Content-Type '${given}' is not supported; use application/json or application/protobuf`,
    )
  }
  if (parseFormat(headers.accept) === undefined) {
    throw createContentError(
      `Accept '${headers.accept}' is not supported; use application/json or application/protobuf`,
    )
  }
  headers['content-type'] = contentTypes[format]
}
