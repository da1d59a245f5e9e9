import { type ErrorCode, KnownError } from '../../../errors.ts'

/** SQLite's primary result codes that have a message of ours. */
const code = {
  perm: 3,
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const

const unwritable = new Set([
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOTDIR',
  'EEXIST',
  'ENOENT',
  'ENAMETOOLONG',
  'ELOOP',
])
/**
 * Extended codes of a write, sync or truncate that failed, for example because of a full disk or a size
 * limit.
 */
const failedWrites = new Set([778, 1034, 1290, 1546, 4874])

/** A KnownError with a message for people; an unexpected error is returned as it is. */
export function toKnownError(error: unknown, path: string): unknown {
  if (error instanceof KnownError || !(error instanceof Error)) return error
  const [known, message] = describe(error) ?? []
  if (known === undefined || message === undefined) return error
  // Callers must not see paths. Messages of SQLite have none; those of the system do, so they get its code.
  const publicReason = 'errcode' in error ? error.message : readCode(error)
  return new KnownError(known, message(path, error.message), error, message('the store', publicReason))
}

type Message = (path: string, reason: string) => string

/** One message for the log, with the path, and for callers, without it. */
function describe(error: Error): readonly [ErrorCode, Message] | undefined {
  if (unwritable.has(readCode(error))) {
    return ['STORE_UNWRITABLE', (path, reason) => `cannot create the folder of ${path}: ${reason}`]
  }
  if (!('errcode' in error) || typeof error.errcode !== 'number') return undefined
  switch (error.errcode & 0xff) {
    case code.full:
      return ['STORE_FULL', (path) => `no space left to write to ${path}; the write was rolled back`]
    case code.ioError:
      if (failedWrites.has(error.errcode)) {
        return [
          'STORE_FULL',
          (path, reason) => `cannot write to ${path} (${reason}); the write was rolled back`,
        ]
      }
      return ['STORE_UNAVAILABLE', (path, reason) => `cannot read or write ${path}: ${reason}`]
    case code.busy:
    case code.locked:
      return ['STORE_LOCKED', (path) => `${path} is in use by another program`]
    case code.cannotOpen:
    case code.perm:
    case code.readOnly:
      return ['STORE_UNWRITABLE', (path, reason) => `cannot open ${path} for writing: ${reason}`]
    case code.notADatabase:
      return ['STORE_NOT_OURS', (path) => `${path} is not a SQLite database`]
    case code.corrupt:
      return ['STORE_UNAVAILABLE', (path, reason) => `${path} is damaged: ${reason}`]
    default:
      return undefined
  }
}

function readCode(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
