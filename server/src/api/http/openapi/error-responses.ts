/** The errors that an operation may answer, by status, in the format of its dialect. */
import { type ErrorCode, getErrorEntry, KnownError } from '../../../errors.ts'
import { isReadPermission } from '../permission.ts'
import type { Route } from '../route.ts'

/** Errors that every operation may answer, before its handler is called. */
const common: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'HOST_REFUSED',
  'REQUEST_TIMEOUT',
  'URL_TOO_LONG',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'SERVER_OVERLOADED',
  'SHUTTING_DOWN',
]
/** Errors of routes that need a credential, if the server requires credentials. */
const withCredential: readonly ErrorCode[] = [
  'CREDENTIAL_MISSING',
  'CREDENTIAL_REFUSED',
  'ACCESS_DENIED',
  'TOO_MANY_FAILED_ATTEMPTS',
  'RATE_EXCEEDED',
  'CROSS_SITE_REFUSED',
  'IDENTITY_PROVIDER_UNAVAILABLE',
]
const withBody: readonly ErrorCode[] = ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE']
const withStore: readonly ErrorCode[] = [
  'STORE_REFUSED',
  'STORE_UNAVAILABLE',
  'STORE_TLS_FAILED',
  'SCHEMA_NEWER',
  'SCHEMA_OLDER',
  'SCHEMA_DIFFERS',
  'STORE_NOT_OURS',
  'STORE_LOCKED',
]
const withWrite: readonly ErrorCode[] = ['READ_ONLY', 'STORE_FULL']

/** All codes of the catalogue that an operation may answer. */
export function listErrorCodes(row: Route): readonly ErrorCode[] {
  const { permission, schema, errors = [] } = row
  const isWithStore = permission !== 'public' && permission !== 'system.info'
  return [
    ...new Set([
      ...common,
      ...(permission === 'public' ? [] : withCredential),
      ...(schema.body === undefined ? [] : withBody),
      ...(isWithStore ? withStore : []),
      ...(isReadPermission(permission) ? [] : withWrite),
      ...errors,
    ]),
  ]
}

/** An error as the dialect of its route answers it: the catalogue and the wire may use different codes. */
export type AnsweredError = Readonly<{ status: number; wireCode: string; hint: string }>

export function listAnsweredErrors(row: Route): readonly AnsweredError[] {
  const { dialect, method, path } = row
  const request = { requestId: '', method, path, accept: undefined, bodyBytesMax: 0 }
  return listErrorCodes(row).map((code) => {
    const { status, body } = dialect.renderError(new KnownError(code, ''), request)
    return { status, wireCode: dialect.readErrorCode(String(body)), hint: getErrorEntry(code).hint }
  })
}
