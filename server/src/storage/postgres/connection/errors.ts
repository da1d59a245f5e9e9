import { type ErrorCode, KnownError } from '../../../errors.ts'

/** The connection broke while a write was being committed: only the database knows whether it was. */
export class OutcomeUnknownError extends Error {
  constructor(cause: unknown) {
    super('outcome of the write is unknown', { cause })
  }
}

/** What was remembered or read of something is out of date. Nothing was written: read again, do again. */
export class StaleReadError extends Error {
  constructor(what: string) {
    super(`${what} changed meanwhile`)
  }
}

/** A letter that was taken for a new one is there already. Nothing was written: look at each, do again. */
export class SourceIdExistsError extends Error {
  readonly queueIds: readonly number[]

  constructor(queueIds: readonly number[]) {
    super('a source id is there already')
    this.queueIds = queueIds
  }
}

/** Raised by redrive.expect_rows: the statement met a change made since it began, and was undone. */
const changedMeanwhile = 'RD001'

const sqlState = {
  serializationFailure: '40001',
  notUnique: '23505',
  deadlock: '40P01',
  lockTimeout: '55P03',
  statementTimeout: '57014',
  readOnly: '25006',
  diskFull: '53100',
  tooManyConnections: '53300',
  noSuchDatabase: '3D000',
  noPrivilege: '42501',
} as const

const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
])

/** `pg` has no codes for these. */
const networkSentences =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|not queryable|connection timeout|connection ended/i

/** The transaction was rolled back through no fault of its own, and may well pass when done again. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof StaleReadError) return true
  const code = codeOf(error)
  return code === sqlState.serializationFailure || code === sqlState.deadlock || code === changedMeanwhile
}

/** That unique index has a row like it. */
export function violatesUniqueIndex(error: unknown, index: string): boolean {
  return (
    error instanceof Error &&
    codeOf(error) === sqlState.notUnique &&
    'constraint' in error &&
    error.constraint === index
  )
}

/** The connection is gone or going: what was sent over it may or may not have been done. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  if (networkCodes.has(code)) return true
  // 08: connection exceptions. 57P: the server is stopping, crashed, starting, or ended the session.
  if (code.startsWith('08') || code.startsWith('57P') || code === '25P03') return true
  return networkSentences.test(error.message)
}

/** The user or the password is wrong, or may no longer come in. */
export function isRefusedLogin(error: unknown): boolean {
  return codeOf(error).startsWith('28')
}

/** What went wrong in words, or the error itself when we did not foresee it. `place` has no password. */
export function toKnownError(error: unknown, place: string): unknown {
  if (error instanceof KnownError || !(error instanceof Error)) return error
  const code = codeOf(error)
  if (code === '22003') {
    return new KnownError('BAD_REQUEST', `a number is out of the range that the store can keep`, error)
  }
  const [known, sentence] = wordsFor(error, code) ?? []
  if (known === undefined || sentence === undefined) return error
  const cause = error instanceof OutcomeUnknownError && error.cause instanceof Error ? error.cause : error
  // The driver's own words name hosts, users and databases; its codes name nothing.
  const told = sentence('the store', codeOf(cause) || 'the connection failed')
  return new KnownError(known, sentence(place, oneLine(cause)), error, told)
}

type Sentence = (place: string, why: string) => string

/** The same sentence for the log, with the place and what it said, and for callers, with neither. */
function wordsFor(error: Error, code: string): readonly [ErrorCode, Sentence] | undefined {
  const unavailable = (sentence: Sentence) => ['STORE_UNAVAILABLE', sentence] as const
  if (error instanceof OutcomeUnknownError) {
    return unavailable(
      (place, why) =>
        `lost the connection to ${place} while writing, so whether the write was kept is unknown: ${why}`,
    )
  }
  if (isRefusedLogin(error)) {
    return ['STORE_REFUSED', (place, why) => `${place} refused the login: ${why}`]
  }
  switch (code) {
    case sqlState.noSuchDatabase:
    case sqlState.noPrivilege:
      return ['STORE_REFUSED', (place, why) => `${place} refused: ${why}`]
    case sqlState.diskFull:
      return [
        'STORE_FULL',
        (place) => `no space left on the disk of ${place}; nothing of this write was kept`,
      ]
    case sqlState.readOnly:
      return unavailable((place, why) => `${place} takes no writes now: ${why}`)
    case sqlState.lockTimeout:
    case sqlState.statementTimeout:
      return unavailable(
        (place, why) => `${place} was too busy to answer in time, and nothing of this was done: ${why}`,
      )
    case sqlState.serializationFailure:
    case sqlState.deadlock:
    case changedMeanwhile:
      return unavailable((place, why) => `${place} had too many conflicting writes at once: ${why}`)
  }
  if (error instanceof StaleReadError) {
    return unavailable((place) => `${place} had too many changes at once: ${error.message}`)
  }
  if (isConnectionLost(error)) return unavailable((place, why) => `cannot reach ${place}: ${why}`)
  // 53: out of connections or memory. 58: the server's own system failed it.
  if (code.startsWith('53') || code.startsWith('58')) {
    return unavailable((place, why) => `${place} failed: ${why}`)
  }
  return undefined
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** An AggregateError of several addresses has no message of its own. */
function oneLine(error: Error): string {
  const text =
    error.message || (error instanceof AggregateError ? String(error.errors[0]?.message) : error.name)
  return text.replace(/\s+/g, ' ').trim()
}
