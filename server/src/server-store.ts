import type { Access } from './access/access.ts'
import { createAccess } from './access/create-access.ts'
import { prepareAccess } from './access/first-start.ts'
import { toRetention } from './config/retention.ts'
import { maskStore } from './config/store/store-text.ts'
import { usPerMs } from './core/time/instant.ts'
import type { Tracing } from './core/trace/tracing.ts'
import type { Webhooks } from './drivers/webhook/webhooks.ts'
import { createEngine } from './engine/create-engine.ts'
import type { Engine } from './engine/engine.ts'
import type { EngineEvent } from './engine/events.ts'
import { createLetters } from './letters/create-letters.ts'
import type { Letters } from './letters/letters.ts'
import { type ClockSkew, createClockSkew } from './ops/health/clock-skew.ts'
import { createStoreConnection, type StoreConnection } from './ops/health/store-connection.ts'
import { logEngineEvent } from './ops/log/engine-log.ts'
import { type AccessTotals, createAccessTotals } from './ops/metrics/access-totals.ts'
import { countLetters, createLetterTotals, type LetterTotals } from './ops/metrics/letter-totals.ts'
import { createPushMetrics, type PushMetrics } from './ops/metrics/push-metrics.ts'
import { createStoreTimes, measureReads, type StoreTimes } from './ops/metrics/store-times.ts'
import { toIdentityProvider } from './server-access.ts'
import type { ServerClock } from './server-clock.ts'
import type { ServerOptions } from './server-options.ts'
import { createServerWebhooks, readConfigured } from './server-webhooks.ts'
import type { StoreReads } from './storage/contract/storage.ts'
import { openStorage, type StoreOptions } from './storage/open-storage.ts'

/** How long the start waits at least for the store before it continues without it. */
const firstAttemptMsMin = 5_000

/** The store and everything that needs it. Engine and letters exist from the first time the store is open. */
export type StoreParts = Readonly<{
  connection: StoreConnection
  clockSkew: ClockSkew
  letterTotals: LetterTotals
  accessTotals: AccessTotals
  storeTimes: StoreTimes
  pushMetrics: PushMetrics
  /** Throws STORE_UNAVAILABLE with the reason while the store was never open. */
  engine(): Engine
  /** Throws STORE_UNAVAILABLE with the reason while the store was never open. */
  letters(): Letters
  /** Throws STORE_UNAVAILABLE with the reason while the store was never open. */
  access(): Access
  /** Undefined while the store was never open. */
  peekEngine(): Engine | undefined
  peekLetters(): Letters | undefined
  /** Throws STORE_UNAVAILABLE with the reason while the store was never open. */
  webhooks(): Webhooks
  peekWebhooks(): Webhooks | undefined
  peekAccess(): Access | undefined
  /** Calls the listener for each event of the engine, also after the store was opened again. */
  onEngineEvent(listener: (event: EngineEvent) => void): void
}>

export function createStoreParts(
  options: ServerOptions,
  clock: ServerClock,
  owner: string,
  tracing: Tracing | undefined,
): StoreParts {
  const { settings, store, log } = options
  const letterTotals = createLetterTotals()
  const accessTotals = createAccessTotals()
  const storeTimes = createStoreTimes()
  let engine: Engine | undefined
  const listeners: ((event: EngineEvent) => void)[] = []
  let letters: Letters | undefined
  let webhooks: Webhooks | undefined
  const pushMetrics = createPushMetrics()
  let access: Access | undefined
  const clockSkew = createClockSkew({
    readOffsetUs: clock.machineOffsetUs,
    offsetMsMax: settings['clock.offset_max'],
    log,
  })
  const connection = createStoreConnection({
    open: async () => {
      const storage = await openMeasured(options, clock, storeTimes)
      if (!settings['test.hooks']) clock.follow(storage.clock)
      engine = createServerEngine(options, storage, clock, { storeTimes, accessTotals, tracing })
      engine.onEvent((event) => {
        countLetters(letterTotals, event)
        logEngineEvent(log, event)
        for (const listener of listeners) listener(event)
      })
      letters = createLetters({ storage, engine, clock, owner, retention: toRetention(settings), log })
      access = createAccess({
        storage,
        engine,
        clock,
        sessionMs: settings['auth.session_timeout'],
        failedAttemptsMax: settings['auth.failed_attempts_max'],
        provider: toIdentityProvider(settings),
      })
      webhooks = createServerWebhooks(options, storage, engine, clock, pushMetrics, tracing)
      if (!settings.read_only) await prepareStore(options, storage, engine, clock, webhooks)
      if (!settings.read_only) webhooks.start()
      return storage
    },
    log,
    onChecked: clockSkew.pass,
    backoffMsMax: settings['store.retry_backoff_max'],
    // A SQLite file that stays locked must stop the start, so the start waits longer than for the lock.
    firstAttemptMsMax: firstAttemptMsMin + (store.kind === 'sqlite' ? settings['sqlite.lock_wait'] : 0),
  })
  // Throws the reason while there is no store. An open store always has all of its parts.
  const whileOpen =
    <T>(read: () => T | undefined) =>
    () => {
      connection.storage()
      return read() as T
    }
  return {
    connection,
    clockSkew,
    letterTotals,
    accessTotals,
    storeTimes,
    pushMetrics,
    engine: whileOpen(() => engine),
    letters: whileOpen(() => letters),
    access: whileOpen(() => access),
    peekEngine: () => engine,
    peekLetters: () => letters,
    webhooks: whileOpen(() => webhooks),
    peekWebhooks: () => webhooks,
    peekAccess: () => access,
    onEngineEvent: (listener) => void listeners.push(listener),
  }
}

async function openMeasured(options: ServerOptions, clock: ServerClock, { reads }: StoreTimes) {
  const storage = await openStorage(options.store, toStoreOptions(options, clock))
  return measureReads(storage, (read, seconds) => reads.observe({ read }, seconds))
}

function toStoreOptions({ settings, log }: ServerOptions, clock: ServerClock): StoreOptions {
  return {
    ...(settings['test.hooks'] ? { clock } : { machineClock: clock.machine }),
    sqliteSynchronous: settings['sqlite.synchronous'] === 'full' ? 'full' : 'normal',
    sqliteLockWaitMs: settings['sqlite.lock_wait'],
    mustExist: settings.must_exist,
    onCreated: () => log.warn(`created new store at ${maskStore(settings.store)}`),
    postgresPoolMax: settings['postgres.connections_max'],
    postgresConnectTimeoutMs: settings['postgres.connect_timeout'],
    postgresIdleMax: settings['database.max_idle_conns'] ?? 0,
    postgresLifetimeMs: settings['database.conn_max_lifetime'],
    isReadOnly: settings.read_only,
  }
}

/**
 * Creates the records that access control needs, and the configured objects of the webhook API. If that
 * fails, the store is opened again.
 */
async function prepareStore(
  options: ServerOptions,
  storage: StoreReads,
  engine: Engine,
  clock: ServerClock,
  webhooks: Webhooks,
): Promise<void> {
  const { settings, onFirstKey } = options
  try {
    const key = await prepareAccess({ storage, engine, clock }, settings.access === 'keys')
    if (key !== null) onFirstKey?.(key)
    await webhooks.configure(await readConfigured(options))
  } catch (error) {
    await engine.close()
    await storage.close()
    throw error
  }
}

function createServerEngine(
  { settings, log }: ServerOptions,
  storage: Awaited<ReturnType<typeof openStorage>>,
  clock: ServerClock,
  {
    storeTimes,
    accessTotals,
    tracing,
  }: Pick<StoreParts, 'storeTimes' | 'accessTotals'> & { tracing: Tracing | undefined },
): Engine {
  return createEngine(storage, {
    clock,
    // Clients may set the clock of test hooks forward, to see what happens then.
    ...(!settings['test.hooks'] && { elapsedUs: () => performance.now() * usPerMs }),
    requestsMax: settings['queue.requests_max'],
    batchMsMax: settings['queue.store_timeout'],
    isTicking: !settings.read_only,
    onQuotaRefused: (quota, namespace) => accessTotals.quotas[quota].add(namespace, 1),
    ...(tracing !== undefined && { tracing }),
    onWrite: (command, seconds, commands) => {
      storeTimes.writes.observe({ command }, seconds)
      storeTimes.batches.observe({ command }, commands)
    },
    onError: (error) => log.warn({ err: error }, 'background work of the queues failed; will retry'),
  })
}
