import type { FastifyRequest } from 'fastify'
import type { Dialect } from '../../http/dialect.ts'
import { ReplySchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { contentTypes, parseFormat } from './format.ts'
import { toJsonSchema } from './openapi-schema.ts'
import { renderError } from './render-error.ts'
import { contentError } from './unreadable.ts'

/** `/v1/…`: the Queue API, in JSON and in protobuf. */
export const queueApi: Dialect = {
  name: 'queue-api',
  ownsPath: (path) => path === '/v1' || path.startsWith('/v1/'),
  errorSchema: toJsonSchema(ReplySchema),
  errorContentType: contentTypes.json,
  renderError,
  prepare: chooseFormats,
  // Read by the handler of each route, which knows its message.
  parseBody: (bytes) => bytes,
  hasOwnBodyChecks: true,
}

/**
 * Decides in which formats the request is read and answered, before its body is.
 *
 * The Content-Type is put in its plain form: the HTTP framework refuses lists, which are legal here, and
 * without one it would not read the body at all.
 */
function chooseFormats(request: FastifyRequest): void {
  const { headers } = request.raw
  const given = headers['content-type']
  const format = parseFormat(given)
  if (format === undefined) {
    throw contentError(`Content-Type '${given}' cannot be read; use application/json or application/protobuf`)
  }
  if (parseFormat(headers.accept) === undefined) {
    throw contentError(
      `Accept '${headers.accept}' cannot be answered; use application/json or application/protobuf`,
    )
  }
  headers['content-type'] = contentTypes[format]
}
