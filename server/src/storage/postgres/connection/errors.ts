import { type ErrorCode, KnownError } from '../../../errors.ts'
import { TlsError } from './tls-errors.ts'

/** The connection broke during a commit: only the database knows whether the write was committed. */
export class OutcomeUnknownError extends Error {
  constructor(cause: unknown) {
    super('outcome of the write is unknown', { cause })
  }
}

/** Cached or read data is out of date. Nothing was written: the write reads it again and is repeated. */
export class StaleReadError extends Error {
  constructor(subject: string) {
    super(`${subject} was changed by another writer`)
  }
}

/**
 * The source id of a new letter already exists. Nothing was written: the write is repeated and looks for each
 * id.
 */
export class SourceIdExistsError extends Error {
  readonly queueIds: readonly number[]

  constructor(queueIds: readonly number[]) {
    super('a source id already exists')
    this.queueIds = queueIds
  }
}

/** Raised by redrive.expect_rows: rows changed after the statement began, and it was rolled back. */
const rowsChanged = 'RD001'

/** The database refuses to write, as a standby does. */
export const readOnlyCode = '25006'

const sqlState = {
  serializationFailure: '40001',
  notUnique: '23505',
  deadlock: '40P01',
  lockTimeout: '55P03',
  statementTimeout: '57014',
  readOnly: readOnlyCode,
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

/** Messages of `pg` for lost connections, which have no code. */
const networkMessages =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|not queryable|connection timeout|connection ended/i

/** The user of the database may not do this. */
export function lacksPrivilege(error: unknown): boolean {
  return readCode(error) === sqlState.noPrivilege
}

/** The transaction was rolled back because of a conflict, and can succeed when it is repeated. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof StaleReadError) return true
  const code = readCode(error)
  return code === sqlState.serializationFailure || code === sqlState.deadlock || code === rowsChanged
}

/** The unique index already has such a row. */
export function violatesUniqueIndex(error: unknown, index: string): boolean {
  return (
    error instanceof Error &&
    readCode(error) === sqlState.notUnique &&
    'constraint' in error &&
    error.constraint === index
  )
}

/** The connection is lost: statements that were sent over it may or may not have been executed. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = readCode(error)
  if (networkCodes.has(code)) return true
  // 08: connection exceptions. 57P: the server is stopping, crashed, starting, or ended the session.
  if (code.startsWith('08') || code.startsWith('57P') || code === '25P03') return true
  return networkMessages.test(error.message)
}

export function isReadOnlyRefusal(error: unknown): boolean {
  return readCode(error) === sqlState.readOnly
}

/** The user or the password is wrong, or the user may no longer log in. */
export function isRefusedLogin(error: unknown): boolean {
  return readCode(error).startsWith('28')
}

/**
 * A KnownError with a message for people; an unexpected error is returned as it is. `address` has no
 * password.
 */
export function toKnownError(error: unknown, address: string): unknown {
  if (error instanceof KnownError || !(error instanceof Error)) return error
  if (error instanceof TlsError) return new KnownError('STORE_TLS_FAILED', error.describe(address), error)
  const code = readCode(error)
  if (code === '22003') {
    return new KnownError('BAD_REQUEST', `a number is out of the range that the store can hold`, error)
  }
  const [known, message] = describe(error, code) ?? []
  if (known === undefined || message === undefined) return error
  const cause = error instanceof OutcomeUnknownError && error.cause instanceof Error ? error.cause : error
  // Callers must not see hosts, users and databases. Messages of the driver name them; its codes do not.
  const publicMessage = message('the store', readCode(cause) || 'the connection failed')
  return new KnownError(known, message(address, toOneLine(cause)), error, publicMessage)
}

type Message = (address: string, reason: string) => string

/** One message for the log, with the address and the driver's message, and for callers, with neither. */
function describe(error: Error, code: string): readonly [ErrorCode, Message] | undefined {
  const toUnavailable = (message: Message) => ['STORE_UNAVAILABLE', message] as const
  if (error instanceof OutcomeUnknownError) {
    return toUnavailable(
      (address, reason) =>
        `lost the connection to ${address} during a write, so its outcome is unknown: ${reason}`,
    )
  }
  if (isRefusedLogin(error)) {
    const remedy = findTlsRemedy(error)
    if (remedy !== undefined) {
      return [
        'STORE_TLS_FAILED',
        (address, reason) => `${address} refused the connection: ${reason}; ${remedy}`,
      ]
    }
    return ['STORE_REFUSED', (address, reason) => `${address} refused the login: ${reason}`]
  }
  switch (code) {
    case sqlState.noSuchDatabase:
    case sqlState.noPrivilege:
      return ['STORE_REFUSED', (address, reason) => `${address} refused: ${reason}`]
    case sqlState.diskFull:
      return ['STORE_FULL', (address) => `no space left on the disk of ${address}; the write was rolled back`]
    case sqlState.readOnly:
      return toUnavailable((address, reason) => `${address} is read-only: ${reason}`)
    case sqlState.lockTimeout:
    case sqlState.statementTimeout:
      return toUnavailable(
        (address, reason) => `${address} did not answer in time, and the write was rolled back: ${reason}`,
      )
    case sqlState.serializationFailure:
    case sqlState.deadlock:
    case rowsChanged:
      return toUnavailable((address, reason) => `${address} had too many conflicting writes: ${reason}`)
  }
  if (error instanceof StaleReadError) {
    return toUnavailable((address) => `${address} had too many conflicting writes: ${error.message}`)
  }
  if (isConnectionLost(error)) return toUnavailable((address, reason) => `cannot reach ${address}: ${reason}`)
  // 53: out of connections or memory. 58: an error of the database server's system.
  if (code.startsWith('53') || code.startsWith('58')) {
    return toUnavailable((address, reason) => `${address} failed: ${reason}`)
  }
  return undefined
}

/** The way out of a login that was refused for the lack of TLS or of a client certificate. */
function findTlsRemedy(error: Error): string | undefined {
  if (/no encryption|SSL off/.test(error.message)) {
    return 'set sslmode to require or verify-full, because pg_hba.conf of the database server may accept this login only with TLS'
  }
  if (/client certificate|certificate authentication failed/.test(error.message)) {
    return 'set store.sslcert and store.sslkey to a client certificate that the database server accepts for this user, and its key'
  }
  return undefined
}

function readCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** An AggregateError of several addresses has no message of its own. */
function toOneLine(error: Error): string {
  const text =
    error.message || (error instanceof AggregateError ? String(error.errors[0]?.message) : error.name)
  return text.replace(/\s+/g, ' ').trim()
}
