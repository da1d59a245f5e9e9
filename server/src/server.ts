/**
 * Puts the parts together, and is the only place that names concrete ones.
 *
 * Start: protected mode is checked, the store is opened, then the port. Stop: no new work, requests
 * under way finish, the store is closed last.
 */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { createAdjustableClock } from './adjustable-clock.ts'
import { createApi } from './api/create-api.ts'
import { toDlqLimits } from './api/dlq/limits.ts'
import { toHttpLimits } from './api/http/http-limits.ts'
import { routes } from './api/routes.ts'
import { createTestHookRoutes } from './api/test-hooks/routes.ts'
import { toRetention } from './config/retention.ts'
import type { Settings } from './config/settings.ts'
import { toDate, usPerMs } from './core/instant.ts'
import { createEngine } from './engine/create-engine.ts'
import type { Engine } from './engine/engine.ts'
import { createLoop } from './engine/loop.ts'
import { KnownError } from './errors.ts'
import { createLetters } from './letters/create-letters.ts'
import type { Letters } from './letters/letters.ts'
import { createLetterLoops } from './letters/loops.ts'
import { logEngineEvent } from './ops/engine-log.ts'
import { readHealth } from './ops/health.ts'
import { readLetterFacts } from './ops/letter-metrics.ts'
import { countLetters, createLetterTotals } from './ops/letter-totals.ts'
import type { Logger } from './ops/log.ts'
import { isLoopback } from './ops/loopback.ts'
import { createMetrics } from './ops/metrics.ts'
import { createReconciler } from './ops/reconciler.ts'
import { createStoreConnection } from './ops/store-connection.ts'
import { createStoreWriteTimes } from './ops/store-write-times.ts'
import { openStorage, type StoreTarget } from './storage/open-storage.ts'
import { createSystemClock } from './system-clock.ts'
import { version } from './version.ts'

export type RunningServer = Readonly<{
  url: string
  /**
   * Requests under way may take `graceMs` more; then they are cut. Safe to call again: all calls
   * wait for the same end, and the shortest grace counts.
   */
  stop(graceMs: number): Promise<void>
}>

export type ServerOptions = Readonly<{
  settings: Settings
  store: StoreTarget
  log: Logger
}>

/** What closing the store may take after the grace: its writes under way, or a database that is gone. */
const storeCloseMsMax = 5_000

/** Rejects with a KnownError when it cannot start; then nothing is left open. */
export async function startServer({ settings, store, log }: ServerOptions): Promise<RunningServer> {
  const { host } = settings
  protect(host)
  const clock = createAdjustableClock(createSystemClock())
  const hasTestHooks = settings['test.hooks']
  if (hasTestHooks)
    log.warn('TEST HOOKS ARE ON: whoever reaches this server can set its clock and hold its queues')
  let engine: Engine | undefined
  let letters: Letters | undefined
  const letterTotals = createLetterTotals()
  const storeWrites = createStoreWriteTimes()
  // A SQLite store has one server: started again, it goes on with its locks instead of waiting for their end.
  const owner = store.kind === 'postgres' ? randomUUID() : 'the only server'
  const connection = createStoreConnection({
    open: async () => {
      const storage = await openStorage(store, {
        clock,
        sqliteSynchronous: settings['sqlite.synchronous'] === 'full' ? 'full' : 'normal',
        postgresPoolMax: settings['postgres.pool_max'],
        postgresConnectTimeoutMs: settings['postgres.connect_timeout'],
      })
      engine = createEngine(storage, {
        clock,
        requestsMax: settings['queue.requests_max'],
        batchMsMax: settings['queue.store_timeout'],
        onWrite: (command, seconds) => storeWrites.observe({ command }, seconds),
        onError: (error) =>
          log.warn({ err: error }, 'background work of the queues failed; it is tried again'),
      })
      engine.onEvent((event) => {
        countLetters(letterTotals, event)
        logEngineEvent(log, event)
      })
      letters = createLetters({
        storage,
        engine,
        clock,
        owner,
        retention: toRetention(settings),
        log,
      })
      return storage
    },
    log,
    backoffMsMax: settings['store.retry_backoff_max'],
  })
  const openedEngine = (): Engine => {
    // Throws the reason while there is no store; once there was one there is its engine.
    connection.storage()
    return engine as Engine
  }
  const reconciler = createReconciler({
    storage: connection.storage,
    engine: openedEngine,
    clock,
    owner,
    intervalUs: settings['counts.reconcile_interval'] * usPerMs,
    log,
  })
  const reconciling = createLoop(settings['counts.reconcile_interval'], reconciler.pass, (error) =>
    log.warn({ err: error }, 'counts could not be compared with their rows; they will be later'),
  )
  const openedLetters = (): Letters => {
    connection.storage()
    return letters as Letters
  }
  const letterLoops = createLetterLoops(
    openedLetters,
    {
      autoMs: settings['letters.auto_interval'],
      campaignsMs: settings['letters.campaign_interval'],
      retentionMs: settings['letters.retention_interval'],
    },
    (pass, error) =>
      log.warn({ err: error, pass }, 'background work on dead letters failed; it is tried again'),
  )
  const checks = [
    {
      name: 'queues:storage',
      componentType: 'datastore',
      read: () => {
        const { isUp, told, checkedAt } = connection.state()
        return { isUp, reason: told, checkedAt }
      },
    },
  ] as const
  const { app, drain } = await createApi({
    version,
    clock,
    startedAt: toDate(clock.now()),
    limits: toHttpLimits(settings),
    queueLimits: {
      produceItemsMax: settings['queue.produce_items_max'],
      leaseItemsMax: settings['queue.lease_items_max'],
      completeItemsMax: settings['queue.complete_items_max'],
    },
    dlqLimits: toDlqLimits(settings),
    storeKind: store.kind,
    storage: connection.storage,
    engine: openedEngine,
    letters: openedLetters,
    health: () => readHealth(checks, version),
    createMetrics: (connections) =>
      createMetrics({
        version,
        storeKind: store.kind,
        isStoreUp: () => connection.state().isUp,
        readCounts: async () => connection.storage().counts({}),
        readLetters: async () => readLetterFacts(connection.storage()),
        letterTotals,
        storeWrites,
        connections,
        reconciled: reconciler.state,
      }),
    // For as long as there is no access control: see protect.
    isLocalOnly: true,
    ...(hasTestHooks && {
      routes: [...routes, ...createTestHookRoutes({ ...clock, advanceLetters: letterLoops.advance })],
    }),
    log,
  })

  try {
    await connection.start()
    await listen(app, host, settings.port)
  } catch (error) {
    await app.close()
    await closeStore(
      Promise.resolve(engine?.close()).then(() => connection.stop()),
      log,
    )
    throw error
  }
  const url = urlOf(app.server.address() as AddressInfo)
  log.info({ url, store: store.kind, version }, 'redrive is up')
  reconciling.start()
  letterLoops.start()

  let whenStopped: Promise<void> | undefined
  const finish = async (drained: Promise<number>): Promise<void> => {
    const cut = await drained
    if (cut > 0) log.warn({ requests: cut }, 'requests were cut: they took longer than the grace')
    await app.close()
    // Steps under way finish, and their locks are given up for the other servers; then nothing needs the store.
    const lettersClosed = letterLoops.stop().then(() => letters?.close())
    const closed = Promise.all([
      engine?.close(),
      reconciling.stop(),
      lettersClosed.catch(() => undefined),
    ]).then(() => connection.stop())
    await closeStore(closed, log)
    log.info('redrive has stopped')
  }
  return {
    url,
    stop: (graceMs) => {
      const drained = drain.stop(graceMs)
      // Leases that wait are answered now, so that nobody waits for them.
      void engine?.close().catch(() => undefined)
      void letterLoops.stop()
      whenStopped ??= finish(drained)
      return whenStopped
    },
  }
}

/** Without access control, whoever reaches the port may do anything. So nobody from outside can. */
function protect(host: string): void {
  if (isLoopback(host)) return
  throw new KnownError(
    'PROTECTED_MODE',
    `refusing to listen on ${host}: without access control every machine that reaches it could do anything`,
  )
}

async function listen(app: FastifyInstance, host: string, port: number): Promise<void> {
  const { server } = app
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  }).catch((error: NodeJS.ErrnoException) => {
    throw portError(error, host, port)
  })
}

function portError(error: NodeJS.ErrnoException, host: string, port: number): unknown {
  switch (error.code) {
    case 'EADDRINUSE':
      return new KnownError('PORT_TAKEN', `port ${port} on ${host} is taken by another program`, error)
    case 'EACCES':
      return new KnownError(
        'PORT_REFUSED',
        `the system does not let us listen on port ${port} of ${host}`,
        error,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new KnownError('PORT_REFUSED', `${host} is not an address of this machine`, error)
    default:
      return error
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function closeStore(closed: Promise<void>, log: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn({ ms: storeCloseMsMax }, 'the store did not close in time; what it answered is safe')
      resolve()
    }, storeCloseMsMax)
  })
  await Promise.race([closed, timeout]).finally(() => clearTimeout(timer))
}
