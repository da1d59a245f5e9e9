import { type ErrorCode, KnownError } from '../../../errors.ts'

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
  const [known, sentence] = wordsFor(error) ?? []
  if (known === undefined || sentence === undefined) return error
  // SQLite's words name no file; those of the system do, and its codes do not.
  const why = 'errcode' in error ? error.message : codeOf(error)
  return new KnownError(known, sentence(path, error.message), error, sentence('the store', why))
}

type Sentence = (path: string, why: string) => string

/** The same sentence for the log, with the path, and for callers, without it. */
function wordsFor(error: Error): readonly [ErrorCode, Sentence] | undefined {
  if (unwritable.has(codeOf(error))) {
    return ['STORE_UNWRITABLE', (path, why) => `cannot make the folder of ${path}: ${why}`]
  }
  if (!('errcode' in error) || typeof error.errcode !== 'number') return undefined
  switch (error.errcode & 0xff) {
    case code.full:
      return ['STORE_FULL', (path) => `no space left to write to ${path}; nothing of this write was kept`]
    case code.ioError:
      if (failedWrites.has(error.errcode)) {
        return [
          'STORE_FULL',
          (path, why) => `cannot write to ${path} (${why}); nothing of this write was kept`,
        ]
      }
      return ['STORE_UNAVAILABLE', (path, why) => `cannot read or write ${path}: ${why}`]
    case code.busy:
    case code.locked:
      return ['STORE_LOCKED', (path) => `${path} is in use by another program`]
    case code.cannotOpen:
    case code.perm:
    case code.readOnly:
      return ['STORE_UNWRITABLE', (path, why) => `cannot open ${path} for writing: ${why}`]
    case code.notADatabase:
      return ['STORE_NOT_OURS', (path) => `${path} is not a SQLite database`]
    case code.corrupt:
      return ['STORE_UNAVAILABLE', (path, why) => `${path} is damaged: ${why}`]
    default:
      return undefined
  }
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
