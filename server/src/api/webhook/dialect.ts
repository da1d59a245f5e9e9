import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Dialect } from '../http/answers/dialect.ts'

const ownPaths = /^\/(?:channels?|producers?|dlq-status|job-status|_status)(?:\/|$)/
const givenTypes = new WeakMap<object, string>()

/** The media type that the client sent, in lower case and without parameters; undefined: none. */
export function readMediaType({ raw }: FastifyRequest): string | undefined {
  return givenTypes.get(raw)?.split(';', 1)[0]?.trim().toLowerCase()
}

/** The whole header as the client sent it. */
export function readContentType({ raw }: FastifyRequest): string | undefined {
  return givenTypes.get(raw)
}

/** The webhook API: form and raw bodies, JSON answers, and errors of one sentence of text. */
export const webhookApi: Dialect = {
  name: 'webhook',
  ownsPath: (path) => ownPaths.test(path),
  errorContentType: 'text/plain',
  errorSchema: Type.String({ description: 'Why the request failed, in one sentence.' }),
  renderError: (error) => ({
    status: error.status,
    contentType: 'text/plain; charset=utf-8',
    body: error.publicMessage || error.code,
  }),
  readErrorCode: (body) => body,
  prepare: (request) => {
    const { headers } = request.raw
    const given = headers['content-type']
    if (given !== undefined) givenTypes.set(request.raw, given)
    // Bodies are read whatever their type is, also if it is absent or malformed.
    headers['content-type'] = 'application/octet-stream'
  },
  // The handler of each route reads the body, because forms, JSON and payloads differ.
  parseBody: (bytes) => bytes,
  hasOwnBodyChecks: true,
}
