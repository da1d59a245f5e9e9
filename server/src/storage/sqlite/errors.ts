import { KnownError } from '../../errors.ts'

/** SQLite's primary result codes that we have a sentence for. */
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
/** Extended codes of a write, sync or truncate that failed: where a full disk or a size limit shows. */
const failedWrites = new Set([778, 1034, 1290, 1546, 4874])

/** What went wrong in words, or the error itself when we did not foresee it. */
export function toKnownError(error: unknown, path: string): unknown {
  if (error instanceof KnownError || !(error instanceof Error)) return error
  if ('code' in error && typeof error.code === 'string' && unwritable.has(error.code)) {
    return new KnownError('STORE_UNWRITABLE', `cannot make the folder of ${path}: ${error.message}`, error)
  }
  if (!('errcode' in error) || typeof error.errcode !== 'number') return error
  const said = error.message
  switch (error.errcode & 0xff) {
    case code.full:
      return new KnownError(
        'STORE_FULL',
        `no space left to write to ${path}; nothing of this write was kept`,
        error,
      )
    case code.ioError:
      if (failedWrites.has(error.errcode)) {
        return new KnownError(
          'STORE_FULL',
          `cannot write to ${path} (${said}); nothing of this write was kept`,
          error,
        )
      }
      return new KnownError('STORE_UNAVAILABLE', `cannot read or write ${path}: ${said}`, error)
    case code.busy:
    case code.locked:
      return new KnownError('STORE_LOCKED', `${path} is in use by another program`, error)
    case code.cannotOpen:
    case code.perm:
    case code.readOnly:
      return new KnownError('STORE_UNWRITABLE', `cannot open ${path} for writing: ${said}`, error)
    case code.notADatabase:
      return new KnownError('STORE_NOT_OURS', `${path} is not a SQLite database`, error)
    case code.corrupt:
      return new KnownError('STORE_UNAVAILABLE', `${path} is damaged: ${said}`, error)
    default:
      return error
  }
}
