/**
 * Keeps the server connected to its store.
 *
 * A store that cannot be reached is tried again, with growing rests, until it answers; meanwhile the
 * server runs and says so. What no retry can mend (a newer schema, a locked file, a wrong password)
 * stops the start. After the start it does not stop anything: somebody may mend it from outside, so
 * it is tried again as well, at the longest rest.
 */
import { createLoop } from '../engine/loop.ts'
import { KnownError } from '../errors.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Logger } from './log.ts'

export type StoreState = Readonly<{
  isUp: boolean
  /** Why it is not up, for the log: it may say where the store is. Without credentials. */
  reason: string | null
  /** The same for callers, who are not told where. */
  told: string | null
  checkedAt: Date
}>

export type StoreConnectionOptions = Readonly<{
  open: () => Promise<StoreReads>
  log: Logger
  now?: () => Date
  random?: () => number
  pingEveryMs?: number
  backoffMsMin?: number
  backoffMsMax?: number
  /** How long the start waits for the first attempt before it goes on without the store. */
  firstAttemptMsMax?: number
}>

export interface StoreConnection {
  /** Rejects with what no retry can mend; else resolves, connected or not. */
  start(): Promise<void>
  /** The open store. Throws STORE_UNAVAILABLE with the reason while there is none. */
  storage(): StoreReads
  state(): StoreState
  /** One attempt to open the store, or one ping of the open one. */
  pass(): Promise<void>
  /** Closes the store after its writes under way. Safe twice. */
  stop(): Promise<void>
}

export function createStoreConnection(options: StoreConnectionOptions): StoreConnection {
  const { open, log, now = () => new Date(), random = Math.random } = options
  const { pingEveryMs = 5_000, backoffMsMin = 200, backoffMsMax = 10_000 } = options
  const { firstAttemptMsMax = 5_000 } = options

  let storage: StoreReads | undefined
  let state: StoreState = down('not connected yet', now())
  let failures = 0
  let isStopped = false
  let lastError: unknown

  const pass = async (): Promise<void> => {
    try {
      if (storage) await storage.ping()
      else await openOnce()
      lastError = undefined
      failures = 0
      if (!state.isUp && storage) log.info({ store: storage.kind }, 'store is up')
      state = { isUp: storage !== undefined, reason: null, told: null, checkedAt: now() }
    } catch (error) {
      lastError = error
      failures += 1
      const reason = reasonOf(error)
      // Once per change, not once per attempt: a day without database must not fill the disk with logs.
      if (state.isUp || state.reason !== reason) log.error({ reason }, 'store cannot be used; trying again')
      state = down(reason, now(), toldOf(error))
    }
  }

  const openOnce = async (): Promise<void> => {
    const opened = await open()
    // Stopped while it was opening: nobody else would ever close it.
    if (isStopped) await opened.close()
    else storage = opened
  }

  const restMs = (): number => {
    if (state.isUp) return pingEveryMs
    if (!isMendable(lastError)) return backoffMsMax
    const backoffMs = Math.min(backoffMsMin * 2 ** Math.min(failures - 1, 20), backoffMsMax)
    // Half of it by chance, so that many servers do not come back to the database at the same moment.
    return backoffMs / 2 + (backoffMs / 2) * random()
  }

  let firstAttempt: Promise<void> | undefined
  const loop = createLoop(
    restMs,
    async () => {
      // The first pass of the loop is the attempt that the start waited for, perhaps not to its end.
      const attempt = firstAttempt ?? pass()
      firstAttempt = undefined
      await attempt
    },
    (error) => log.error({ err: error }, 'store check failed'),
  )

  return {
    pass,
    state: () => state,
    storage: () => {
      if (storage && !isStopped) return storage
      const why = 'the store cannot be used now'
      const { reason, told } = state
      throw new KnownError('STORE_UNAVAILABLE', `${why}: ${reason}`, undefined, `${why}: ${told}`)
    },
    start: async () => {
      firstAttempt = pass()
      await settledWithin(firstAttempt, firstAttemptMsMax)
      if (lastError !== undefined && !isMendable(lastError)) throw asShown(lastError)
      loop.start()
    },
    stop: async () => {
      isStopped = true
      await loop.stop()
      await firstAttempt
      await storage?.close()
      state = down('stopped', now())
    },
  }
}

/** What the network, a restarting database or a full disk causes passes by itself, or is mended from outside. */
function isMendable(error: unknown): boolean {
  if (isRefusal(error)) return false
  return error instanceof KnownError && (error.code === 'STORE_UNAVAILABLE' || error.code === 'STORE_FULL')
}

/** PostgreSQL answered, and said no: wrong user or password (class 28), no such database, no permission. */
function isRefusal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = 'code' in cause ? cause.code : undefined
    if (typeof code === 'string' && (/^28...$/.test(code) || code === '3D000' || code === '42501'))
      return true
  }
  return false
}

function asShown(error: unknown): unknown {
  if (!isRefusal(error)) return error
  if (error instanceof KnownError && error.code !== 'STORE_UNAVAILABLE') return error
  return new KnownError('STORE_REFUSED', `the store refuses us: ${reasonOf(error)}`, error)
}

function down(reason: string, checkedAt: Date, told = reason): StoreState {
  return { isUp: false, reason, told, checkedAt }
}

function toldOf(error: unknown): string {
  return error instanceof KnownError ? error.publicMessage : 'the log of the server says why'
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  // Should a library ever put a URL with credentials into its message. Rather too much than too little.
  return text.replace(/\/\/\S*@/g, '//***@')
}

async function settledWithin(promise: Promise<unknown>, msMax: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, msMax)
  })
  await Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}
