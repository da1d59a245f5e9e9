/**
 * Keeps the server connected to its store.
 *
 * If the store cannot be reached, the connection is retried with growing delays. The server runs in this
 * time, and reports the store as down. An error that a retry cannot resolve (a newer schema, a locked file, a
 * wrong password) stops the start. After the start such an error stops nothing, because an operator may
 * resolve it: it is retried with the longest delay.
 */
import { createLoop, type Loop } from '../../engine/loop.ts'
import { KnownError } from '../../errors.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Logger } from '../log/log.ts'

export type StoreState = Readonly<{
  isUp: boolean
  /** Why the store is down, for the log. It may contain the address of the store, but no credentials. */
  reason: string | null
  /** The reason for callers, without the address of the store. */
  publicReason: string | null
  checkedAt: Date
}>

export type StoreConnectionOptions = Readonly<{
  open: () => Promise<StoreReads>
  log: Logger
  /** Called after each successful check of the store. */
  onChecked?: () => void
  now?: () => Date
  random?: () => number
  pingEveryMs?: number
  /** A store that does not answer a ping for this long is down. */
  pingMsMax?: number
  backoffMsMin?: number
  backoffMsMax?: number
  /** How long the start waits for the first attempt before it continues without the store. */
  firstAttemptMsMax?: number
}>

export interface StoreConnection {
  /** Rejects with an error that a retry cannot resolve. Otherwise resolves, connected or not. */
  start(): Promise<void>
  /** Returns the open store. Throws STORE_UNAVAILABLE with the reason if there is none. */
  storage(): StoreReads
  state(): StoreState
  /** Tries once to open the store, or pings the open store. */
  pass(): Promise<void>
  /** Closes the store after its writes in progress. Can be called twice. */
  stop(): Promise<void>
}

export function createStoreConnection(options: StoreConnectionOptions): StoreConnection {
  return new Connection(options)
}

const defaults = {
  onChecked: () => {},
  now: () => new Date(),
  random: Math.random,
  pingEveryMs: 2_000,
  pingMsMax: 2_500,
  backoffMsMin: 200,
  backoffMsMax: 10_000,
  firstAttemptMsMax: 5_000,
}

class Connection implements StoreConnection {
  readonly #options: Required<StoreConnectionOptions>
  readonly #loop: Loop
  #storage: StoreReads | undefined
  #state: StoreState
  #failures = 0
  #isStarting = false
  #isStopped = false
  #lastError: unknown
  /** The attempt of the start, until the loop has taken it over. */
  #firstAttempt: Promise<void> | undefined

  constructor(options: StoreConnectionOptions) {
    this.#options = { ...defaults, ...options }
    this.#state = createDownState('not connected yet', this.#options.now())
    this.#loop = createLoop(
      () => this.#waitMs(),
      async () => {
        // The first pass of the loop is the attempt of the start, which may still be in progress.
        const attempt = this.#firstAttempt ?? this.pass()
        this.#firstAttempt = undefined
        await attempt
      },
      (error) => options.log.error({ err: error }, 'store check failed'),
    )
  }

  readonly state = (): StoreState => this.#state

  readonly storage = (): StoreReads => {
    if (this.#storage && !this.#isStopped) return this.#storage
    const summary = 'the store cannot be used now'
    const { reason, publicReason } = this.#state
    const publicMessage = `${summary}: ${publicReason}`
    throw new KnownError('STORE_UNAVAILABLE', `${summary}: ${reason}`, undefined, publicMessage)
  }

  async start(): Promise<void> {
    this.#isStarting = true
    this.#firstAttempt = this.pass()
    await waitAtMost(this.#firstAttempt, this.#options.firstAttemptMsMax)
    this.#isStarting = false
    if (this.#lastError !== undefined && !isRetryable(this.#lastError)) throw toStartError(this.#lastError)
    this.#loop.start()
  }

  async pass(): Promise<void> {
    const { log, now } = this.#options
    try {
      if (this.#storage) await pingWithin(this.#storage, this.#options.pingMsMax)
      else await this.#open()
      this.#lastError = undefined
      this.#failures = 0
      if (!this.#state.isUp && this.#storage) log.info({ store: this.#storage.kind }, 'store is up')
      const isUp = this.#storage !== undefined
      this.#state = { isUp, reason: null, publicReason: null, checkedAt: now() }
      this.#options.onChecked()
    } catch (error) {
      this.#lastError = error
      this.#failures += 1
      const reason = toReason(error)
      // Log once per change, not per attempt: a day without the database must not fill the disk with logs.
      const isChange = this.#state.isUp || this.#state.reason !== reason
      const isStartRefused = this.#isStarting && !isRetryable(error)
      const message = isStartRefused ? 'store cannot be used' : 'store cannot be used; retrying'
      if (isChange) log.error({ reason }, message)
      this.#state = createDownState(reason, now(), toPublicReason(error))
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop.stop()
    await this.#firstAttempt
    await this.#storage?.close()
    this.#state = createDownState('stopped', this.#options.now())
  }

  async #open(): Promise<void> {
    const opened = await this.#options.open()
    // If the connection was stopped while the store was opening, it must be closed here.
    if (this.#isStopped) await opened.close()
    else this.#storage = opened
  }

  #waitMs(): number {
    const { pingEveryMs, backoffMsMin, backoffMsMax, random } = this.#options
    if (this.#state.isUp) return pingEveryMs
    // A store on a full disk is open: it is checked as often as one that is up.
    if (isFull(this.#lastError)) return pingEveryMs
    if (!isRetryable(this.#lastError)) return backoffMsMax
    const backoffMs = Math.min(backoffMsMin * 2 ** Math.min(this.#failures - 1, 20), backoffMsMax)
    // Half of the delay is random, so that many servers do not reconnect at the same moment.
    return backoffMs / 2 + (backoffMs / 2) * random()
  }
}

function isFull(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'STORE_FULL'
}

/** True for errors of the network, of a restarting database and of a full disk, which can disappear. */
function isRetryable(error: unknown): boolean {
  if (isRefusal(error)) return false
  return error instanceof KnownError && (error.code === 'STORE_UNAVAILABLE' || error.code === 'STORE_FULL')
}

/**
 * True if PostgreSQL refused the connection: wrong user or password (class 28), no such database, no
 * permission.
 */
function isRefusal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = 'code' in cause ? cause.code : undefined
    if (typeof code === 'string' && (/^28...$/.test(code) || code === '3D000' || code === '42501'))
      return true
  }
  return false
}

function toStartError(error: unknown): unknown {
  if (!isRefusal(error)) return error
  if (error instanceof KnownError && error.code !== 'STORE_UNAVAILABLE') return error
  return new KnownError('STORE_REFUSED', `the store refused the connection: ${toReason(error)}`, error)
}

function createDownState(reason: string, checkedAt: Date, publicReason = reason): StoreState {
  return { isUp: false, reason, publicReason, checkedAt }
}

function toPublicReason(error: unknown): string {
  return error instanceof KnownError
    ? error.publicMessage
    : 'the store did not answer as expected; see the log of the server'
}

function toReason(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  // A library might put a URL with credentials into its message: remove everything before the @.
  return text.replace(/\/\/\S*@/g, '//***@')
}

/** A ping that hangs is left behind: its connection has limits of its own. */
async function pingWithin(storage: StoreReads, msMax: number): Promise<void> {
  const ping = storage.ping().then(() => true)
  ping.catch(() => {})
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), msMax)
  })
  const isAnswered = await Promise.race([ping, timeout]).finally(() => clearTimeout(timer))
  if (isAnswered) return
  const sentence = `the store did not answer within ${msMax} ms`
  throw new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence)
}

async function waitAtMost(promise: Promise<unknown>, msMax: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, msMax)
  })
  await Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}
