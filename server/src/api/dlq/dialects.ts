/**
 * `/api/v1/dlq` serves two APIs with different error formats: the management API (list, requeue, purge,
 * stats) and the topic API (messages of a topic).
 */
import { Type } from 'typebox'
import type { KnownError } from '../../errors.ts'
import type { Dialect } from '../http/answers/dialect.ts'
import { describedWith } from '../http/openapi/annotations.ts'
import { type FieldFault, InvalidRequest } from '../http/validation/invalid-request.ts'
import { v1 } from '../v1/dialect.ts'

export const prefix = '/api/v1/dlq'
const managementPaths: readonly string[] = ['', '/requeue', '/purge', '/stats'].map((path) => prefix + path)

/** Bodies are read as in `/api/v1`. */
const bodyParser = {
  checkMediaType: v1.checkMediaType,
  parseBody: v1.parseBody,
  readErrorCode: v1.readErrorCode,
}

const json = { contentType: 'application/json; charset=utf-8' } as const

/** The management API: `{ok, data, error}`. */
export const dlqManagement: Dialect = {
  name: 'dlq',
  ownsPath: (path) => managementPaths.includes(path),
  ...bodyParser,
  errorContentType: 'application/json',
  errorSchema: Type.Object({
    ok: Type.Literal(false),
    error: Type.Object({
      code: Type.Enum([
        'VALIDATION_ERROR',
        'AUTH_REQUIRED',
        'NOT_FOUND',
        'RATE_LIMITED',
        'DEPENDENCY_ERROR',
        'INTERNAL_ERROR',
      ]),
      message: Type.String(),
      meta: Type.Optional(
        Type.Object({
          fields: Type.Array(Type.Object({ name: Type.String(), message: Type.String() }), {
            description: 'One entry per invalid field.',
          }),
        }),
      ),
    }),
  }),

  renderError: (error, { requestId }) => {
    const fields = readFaults(error).map(({ field, message }) => ({ name: shortenField(field), message }))
    const meta = fields.length === 0 ? {} : { meta: { fields } }
    return {
      ...json,
      status: error.status,
      headers: { 'X-Debug-Id': requestId },
      body: JSON.stringify({
        ok: false,
        error: { code: toManagementCode(error), message: error.publicMessage, ...meta },
      }),
    }
  },
}

function toManagementCode({ status }: KnownError): string {
  switch (status) {
    case 401:
    case 403:
      return 'AUTH_REQUIRED'
    case 404:
      return 'NOT_FOUND'
    case 429:
      return 'RATE_LIMITED'
    case 503:
    case 507:
      return 'DEPENDENCY_ERROR'
    default:
      return status < 500 ? 'VALIDATION_ERROR' : 'INTERNAL_ERROR'
  }
}

const messageCodes = [
  'SYS_DLQ_PROCESS_FAILED',
  'SYS_AUTH_UNAUTHORIZED',
  'SYS_AUTH_PERMISSION_DENIED',
  'SYS_DLQ_NOT_FOUND',
  'SYS_DLQ_CONFLICT',
  'SYS_DLQ_VALIDATION_ERROR',
  'SYS_DLQ_INTERNAL_ERROR',
]

/** The topic API: `{error: {code, message, request_id, details}}`. */
export const dlqMessages: Dialect = {
  name: 'dlq-messages',
  ownsPath: (path) => path.startsWith(`${prefix}/`),
  ...bodyParser,
  errorContentType: 'application/json',
  errorSchema: Type.Object({
    error: Type.Object({
      code: describedWith(
        { enum: messageCodes },
        Type.String({ description: 'SYS_DLQ_… or, for access errors, SYS_AUTH_….' }),
      ),
      message: Type.String(),
      request_id: Type.String({ description: 'Id of the request, which the log also shows.' }),
      details: Type.Array(
        Type.Object({ field: Type.String(), reason: Type.String(), message: Type.String() }),
        {
          description: 'One entry per invalid field.',
        },
      ),
    }),
  }),

  renderError: (error, { requestId }) => ({
    ...json,
    status: error.status,
    body: JSON.stringify({
      error: {
        code: toMessageCode(error),
        message: error.publicMessage,
        request_id: requestId,
        details: readFaults(error).map(({ field, message }) => ({
          field: shortenField(field),
          reason: 'invalid',
          message,
        })),
      },
    }),
  }),
}

function toMessageCode({ code, status }: KnownError): string {
  if (code === 'TARGET_UNAVAILABLE') return 'SYS_DLQ_PROCESS_FAILED'
  switch (status) {
    case 401:
      return 'SYS_AUTH_UNAUTHORIZED'
    case 403:
      return 'SYS_AUTH_PERMISSION_DENIED'
    case 404:
      return 'SYS_DLQ_NOT_FOUND'
    case 409:
      return 'SYS_DLQ_CONFLICT'
    default:
      return status < 500 ? 'SYS_DLQ_VALIDATION_ERROR' : 'SYS_DLQ_INTERNAL_ERROR'
  }
}

function readFaults(error: KnownError): readonly FieldFault[] {
  return error instanceof InvalidRequest ? error.faults : []
}

/** `body.ids[3]` → `ids[3]`: the contract names fields without their part of the request. */
function shortenField(field: string): string {
  return field.replace(/^(body|query|path)\./, '')
}
