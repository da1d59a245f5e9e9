/** `/internal/v1`: the operations API of workers on Kafka. Its errors have the format of RFC 9457. */
import { Type } from 'typebox'
import type { Dialect } from '../http/answers/dialect.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'
import { v1 } from '../v1/dialect.ts'

export const internalPrefix = '/internal/v1/dlq'

const codes = [
  'VALIDATION_FAILED',
  'UNAUTHENTICATED',
  'ACCESS_DENIED',
  'ENTITY_NOT_FOUND',
  'INVALID_STATE_TRANSITION',
  'RATE_LIMIT_EXCEEDED',
  'SERVICE_UNAVAILABLE',
  'INTERNAL_ERROR',
] as const

export const internal: Dialect = {
  name: 'internal',
  ownsPath: (path) => path.startsWith('/internal/'),
  checkMediaType: v1.checkMediaType,
  parseBody: v1.parseBody,
  readErrorCode: (body) => (JSON.parse(body) as { error_code: string }).error_code,
  errorContentType: 'application/problem+json',
  errorSchema: Type.Object({
    type: Type.String({ description: '`urn:redrive:error:` and the code.' }),
    title: Type.String({ description: 'The kind of the problem.' }),
    status: Type.Integer({ description: 'The status of the response.' }),
    detail: Type.String({ description: 'For people: why this request failed.' }),
    instance: Type.String({ description: 'The path of the request.' }),
    error_code: Type.Enum([...codes], { description: 'Code for programs.' }),
    timestamp: Type.String({ format: 'date-time', description: 'When the request failed.' }),
    correlation_id: Type.String({ description: 'Id of the request, which the log also shows.' }),
    violations: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
        description: 'One entry per invalid field.',
      }),
    ),
  }),

  renderError: (error, { requestId, path }) => {
    // In this dialect a wrong key is answered like a missing one.
    const status = error.code === 'CREDENTIAL_REFUSED' ? 401 : error.status
    const code = toCode(status)
    const violations = error instanceof InvalidRequest ? { violations: error.faults } : {}
    return {
      status,
      contentType: 'application/problem+json; charset=utf-8',
      body: JSON.stringify({
        type: `urn:redrive:error:${code}`,
        title: titles[code],
        status,
        detail: `${error.publicMessage}. ${error.hint}`,
        instance: path,
        error_code: code,
        timestamp: new Date().toISOString(),
        correlation_id: requestId,
        ...violations,
      }),
    }
  },
}

const titles: Readonly<Record<(typeof codes)[number], string>> = {
  VALIDATION_FAILED: 'The request is invalid',
  UNAUTHENTICATED: 'The request has no valid credential',
  ACCESS_DENIED: 'The caller may not do this',
  ENTITY_NOT_FOUND: 'There is no such message',
  INVALID_STATE_TRANSITION: 'The message cannot be changed in this way now',
  RATE_LIMIT_EXCEEDED: 'There are too many requests',
  SERVICE_UNAVAILABLE: 'A part of the service does not answer',
  INTERNAL_ERROR: 'The request failed',
}

function toCode(status: number): (typeof codes)[number] {
  switch (status) {
    case 401:
      return 'UNAUTHENTICATED'
    case 403:
      return 'ACCESS_DENIED'
    case 404:
      return 'ENTITY_NOT_FOUND'
    case 409:
      return 'INVALID_STATE_TRANSITION'
    case 429:
      return 'RATE_LIMIT_EXCEEDED'
    case 503:
    case 507:
      return 'SERVICE_UNAVAILABLE'
    default:
      return status < 500 ? 'VALIDATION_FAILED' : 'INTERNAL_ERROR'
  }
}
