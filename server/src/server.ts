/**
 * Creates the parts of a server and connects them. This is the only file that names concrete parts.
 *
 * - Start: check protected mode, open the store, open the port, start the background loops.
 * - Stop: refuse new requests, wait for requests in progress, stop the loops, close the store.
 */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Access } from './access/access.ts'
import { createAccess } from './access/create-access.ts'
import { prepareAccess } from './access/first-start.ts'
import { createApi } from './api/create-api.ts'
import { toDlqLimits } from './api/dlq/limits.ts'
import type { Drain } from './api/http/connections/drain.ts'
import { toHttpLimits } from './api/http/connections/http-limits.ts'
import { routes } from './api/routes.ts'
import { createTestHookRoutes } from './api/test-hooks/routes.ts'
import { defaultWebhookOptions, type WebhookOptions } from './api/webhook/options.ts'
import { toDeliveryRules, toDispatchRules } from './config/delivery-rules.ts'
import { toRetention } from './config/retention.ts'
import type { Secret } from './config/secrets/secret.ts'
import type { Settings } from './config/settings/settings.ts'
import { maskStore } from './config/store/store-text.ts'
import { toGateway } from './config/webhook-gateway.ts'
import { mapSecrets } from './core/kafka/cluster.ts'
import { type Clock, toDate, usPerMs } from './core/time/instant.ts'
import { createKafka } from './drivers/kafka/create-kafka.ts'
import type { Kafka, KafkaClusterHealth } from './drivers/kafka/kafka.ts'
import { createWebhooks, type Webhooks } from './drivers/webhook/webhooks.ts'
import { createEngine } from './engine/create-engine.ts'
import type { Engine } from './engine/engine.ts'
import { createLoop, type Loop } from './engine/loop.ts'
import { KnownError } from './errors.ts'
import { createLetters } from './letters/create-letters.ts'
import type { Letters } from './letters/letters.ts'
import { createLetterLoops, type LetterLoops } from './letters/loops.ts'
import { type ClockSkew, createClockSkew } from './ops/health/clock-skew.ts'
import { type HealthCheck, readHealth } from './ops/health/health.ts'
import { createReconciler, type Reconciler } from './ops/health/reconciler.ts'
import { createStoreConnection, type StoreConnection } from './ops/health/store-connection.ts'
import { logEngineEvent } from './ops/log/engine-log.ts'
import type { Logger } from './ops/log/log.ts'
import type { MetricReport } from './ops/metrics/combined-metrics.ts'
import type { KafkaLag } from './ops/metrics/kafka-metrics.ts'
import { labelValuesMax } from './ops/metrics/labelled-totals.ts'
import { readLetterFigures } from './ops/metrics/letter-metrics.ts'
import { countLetters, createLetterTotals, type LetterTotals } from './ops/metrics/letter-totals.ts'
import { createMetrics } from './ops/metrics/metrics.ts'
import { createPushMetrics, type PushMetrics } from './ops/metrics/push-metrics.ts'
import { createStoreWriteTimes, type StoreWriteTimes } from './ops/metrics/store-write-times.ts'
import {
  checkHost,
  createApiAccess,
  createTlsLoop,
  readTls,
  type ServerTls,
  toIdentityProvider,
} from './server-access.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'
import type { StoreReads } from './storage/contract/storage.ts'
import { openStorage, type StoreOptions, type StoreTarget } from './storage/open-storage.ts'
import { createSystemClock } from './system-clock.ts'
import { version } from './version.ts'

export type RunningServer = Readonly<{
  url: string
  /**
   * Requests in progress may take `graceMs` longer; then they are aborted. Can be called again: all calls
   * wait for the same end, and the shortest grace applies.
   */
  stop(graceMs: number): Promise<void>
  /** The metrics of this process, for the process that answers a scrape. */
  reportMetrics(): Promise<MetricReport>
}>

export type ServerOptions = Readonly<{
  settings: Settings
  store: StoreTarget
  log: Logger
  /** Collects the metrics of all processes that serve this port. */
  collectReports?: () => Promise<readonly MetricReport[]>
  /** Receives the key of the administrator once, at the first start with access control. */
  onFirstKey?: (key: string) => void
  /** Reads a secret of the settings, which may be a reference. Default: it is the secret itself. */
  readSecret?: (given: Secret) => Promise<Secret>
  /** For tests: the clock of this machine. */
  machineClock?: Clock
}>

/**
 * How long closing the store may take after the grace: for writes in progress, or an unreachable database.
 */
const storeCloseMsMax = 5_000

/** How long the start waits at least for the store before it continues without it. */
const firstAttemptMsMin = 5_000

/** The store and everything that needs it. Engine and letters exist from the first time the store is open. */
type StoreParts = Readonly<{
  connection: StoreConnection
  clockSkew: ClockSkew
  letterTotals: LetterTotals
  storeWrites: StoreWriteTimes
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
}>

type BackgroundLoops = Readonly<{
  reconciler: Reconciler
  reconcileLoop: Loop
  letterLoops: LetterLoops
  keyUseLoop: Loop
}>

const keyUseMs = 10_000

const readOnlySentence =
  'READ-ONLY: requests that write are refused, and this server runs nothing in the background: it ends no leases, starts no scheduled items or automatic redrives, runs no campaigns and no retention, and repairs no counts'

/** Rejects with a KnownError if the server cannot start; then it leaves nothing open. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings, store, log } = options
  checkHost(settings)
  toIdentityProvider(settings)
  const tls = await readTls(settings)
  if (settings['test.hooks']) {
    log.warn('TEST HOOKS ARE ON: every client of this server can set its clock and hold its queues')
  }
  const clock = createServerClock(options.machineClock ?? createSystemClock())
  // A SQLite store has only one server. After a restart it continues with its own locks instead of waiting
  // for them.
  const owner = store.kind === 'postgres' ? randomUUID() : 'the only server'
  const parts = createStoreParts(options, clock, owner)
  const loops = createBackgroundLoops(options, parts, clock, owner)
  const kafka = createKafkaDriver(options, parts, clock)
  const { app, drain, metrics } = await createServerApi(options, parts, loops, kafka, clock, tls)
  try {
    await parts.connection.start()
    await listen(app, settings.host, settings.port)
  } catch (error) {
    await app.close()
    const closed = Promise.resolve(parts.peekEngine()?.close()).then(() => parts.connection.stop())
    await waitForStoreClose(closed, log)
    throw error
  }
  const url = toUrl(app.server.address() as AddressInfo, tls !== undefined)
  const tlsLoop = tls && createTlsLoop(tls, app, settings['tls.reload_interval'], log)
  tlsLoop?.start()
  log.info({ url, store: store.kind, version }, 'redrive is up')
  if (settings.read_only) log.warn(readOnlySentence)
  else {
    loops.reconcileLoop.start()
    loops.letterLoops.start()
    loops.keyUseLoop.start()
    kafka.start()
  }
  const stopServer = createStop(app, drain, parts, loops, kafka, log)
  const stop: RunningServer['stop'] = async (graceMs) => {
    void tlsLoop?.stop()
    return stopServer(graceMs)
  }
  return { url, stop, reportMetrics: metrics.report }
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

function createStoreParts(options: ServerOptions, clock: ServerClock, owner: string): StoreParts {
  const { settings, store, log } = options
  const letterTotals = createLetterTotals()
  const storeWrites = createStoreWriteTimes()
  let engine: Engine | undefined
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
      const storage = await openStorage(store, toStoreOptions(options, clock))
      if (!settings['test.hooks']) clock.follow(storage.clock)
      engine = createServerEngine(options, storage, clock, storeWrites)
      engine.onEvent((event) => {
        countLetters(letterTotals, event)
        logEngineEvent(log, event)
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
      webhooks = createServerWebhooks(options, storage, engine, clock, pushMetrics)
      if (!settings.read_only) await prepareStore(options, storage, engine, clock)
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
    storeWrites,
    pushMetrics,
    engine: whileOpen(() => engine),
    letters: whileOpen(() => letters),
    access: whileOpen(() => access),
    peekEngine: () => engine,
    peekLetters: () => letters,
    webhooks: whileOpen(() => webhooks),
    peekWebhooks: () => webhooks,
    peekAccess: () => access,
  }
}

/** Creates the records that access control needs. If that fails, the store is opened again. */
async function prepareStore(
  { settings, onFirstKey }: ServerOptions,
  storage: StoreReads,
  engine: Engine,
  clock: ServerClock,
): Promise<void> {
  try {
    const key = await prepareAccess({ storage, engine, clock }, settings.access === 'keys')
    if (key !== null) onFirstKey?.(key)
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
  storeWrites: StoreWriteTimes,
): Engine {
  return createEngine(storage, {
    clock,
    // Clients may set the clock of test hooks forward, to see what happens then.
    ...(!settings['test.hooks'] && { elapsedUs: () => performance.now() * usPerMs }),
    requestsMax: settings['queue.requests_max'],
    batchMsMax: settings['queue.store_timeout'],
    isTicking: !settings.read_only,
    onWrite: (command, seconds) => storeWrites.observe({ command }, seconds),
    onError: (error) => log.warn({ err: error }, 'background work of the queues failed; will retry'),
  })
}

function toWebhookOptions(settings: Settings): WebhookOptions {
  const scheduleDelayUsMin = settings['webhooks.schedule_delay_min'] * usPerMs
  return { ...defaultWebhookOptions, scheduleDelayUsMin }
}

function createServerWebhooks(
  { settings, log }: ServerOptions,
  storage: StoreReads,
  engine: Engine,
  clock: Clock,
  metrics: PushMetrics,
): Webhooks {
  const isLoopbackAllowed = settings['webhooks.loopback_allowed'] ?? settings.access === 'off'
  return createWebhooks({
    storage: () => storage,
    engine: () => engine,
    clock,
    deliveryRules: toDeliveryRules(settings),
    dispatchRules: toDispatchRules(settings),
    addresses: { isLoopbackAllowed, allowed: settings['webhooks.allowed_targets'] },
    schedule: {
      intervalMs: settings['webhooks.schedule_interval'],
      batchMax: settings['webhooks.schedule_batch'],
    },
    isRecovering: settings['webhooks.recovery_enabled'],
    onAttempt: metrics.count,
    onError: (error) => log.warn({ err: error }, 'work on webhooks failed; will retry'),
  })
}

function createBackgroundLoops(
  { settings, log }: ServerOptions,
  { connection, engine, letters, access }: StoreParts,
  clock: ServerClock,
  owner: string,
): BackgroundLoops {
  const reconcileMs = settings['counts.reconcile_interval']
  const intervalUs = reconcileMs * usPerMs
  const reconciler = createReconciler({
    storage: connection.storage,
    engine,
    clock,
    owner,
    intervalUs,
    log,
  })
  const reconcileLoop = createLoop(reconcileMs, reconciler.pass, (error) =>
    log.warn({ err: error }, 'counts could not be compared with their rows; will retry'),
  )
  const letterLoops = createLetterLoops(
    letters,
    {
      autoMs: settings['letters.redrive_interval'],
      campaignsMs: settings['letters.campaign_interval'],
      retentionMs: settings['letters.retention_interval'],
    },
    (pass, error) => log.warn({ err: error, pass }, 'background work on dead letters failed; will retry'),
  )
  const keyUseLoop = createLoop(
    keyUseMs,
    async () => access().recordKeyUses(),
    (error) => log.warn({ err: error }, 'the use of keys could not be recorded; will retry'),
  )
  return { reconciler, reconcileLoop, letterLoops, keyUseLoop }
}

function createKafkaDriver(
  { settings, log, readSecret = async (given) => given }: ServerOptions,
  { connection, engine }: StoreParts,
  clock: ServerClock,
): Kafka {
  return createKafka({
    clusters: settings['kafka.clusters'].map((cluster) =>
      mapSecrets(cluster, (secret) => async () => (await readSecret(secret)).reveal()),
    ),
    engine,
    storage: connection.storage,
    clock,
    owner: randomUUID(),
    intervals: {
      discoveryMs: settings['kafka.discovery_interval'],
      proofMs: settings['kafka.proof_interval'],
      proofGraceMs: settings['kafka.proof_grace'],
      proofTimeoutMs: settings['kafka.proof_timeout'],
      lagMs: settings['kafka.lag_interval'],
      backoffMsMax: settings['kafka.retry_backoff_max'],
    },
    log,
  })
}

function createServerApi(
  { settings, store, log, collectReports }: ServerOptions,
  {
    connection,
    clockSkew,
    letterTotals,
    storeWrites,
    engine,
    letters,
    access,
    webhooks,
    peekWebhooks,
    pushMetrics,
  }: StoreParts,
  { reconciler, letterLoops }: BackgroundLoops,
  kafka: Kafka,
  clock: ServerClock,
  tls: ServerTls | undefined,
): ReturnType<typeof createApi> {
  const readStoreState = () => {
    const { isUp, publicReason, checkedAt } = connection.state()
    return { isUp, reason: publicReason, checkedAt }
  }
  const checks = [
    { name: 'queues:storage', componentType: 'datastore', read: readStoreState },
    // A SQLite store has no clock to compare with.
    ...(store.kind === 'postgres'
      ? [{ name: 'clock:offset', componentType: 'system', read: clockSkew.state } as const]
      : []),
  ] as const
  return createApi({
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
    engine,
    letters,
    webhooks,
    webhookOptions: toWebhookOptions(settings),
    webhookGateway: toGateway(settings),
    access,
    kafka,
    health: () => readHealth([...checks, ...kafka.health().map(toKafkaCheck)], version),
    createMetrics: (countConnections) =>
      createMetrics({
        version,
        storeKind: store.kind,
        isStoreUp: () => connection.state().isUp,
        readCounts: async () => connection.storage().readQueueCounts({ countMax: labelValuesMax }),
        readLetters: async () => readLetterFigures(connection.storage()),
        letterTotals,
        storeWrites,
        pushes: pushMetrics,
        readDeadJobs: async () => connection.storage().listConsumerCounts(),
        readDispatch: () => peekWebhooks()?.dispatcher.counts(),
        countConnections,
        readClockOffsetSeconds: clockSkew.readOffsetSeconds,
        getReconcileState: reconciler.state,
        ...(kafka.clusters.length > 0 && { listKafkaLags: () => listLags(kafka) }),
        ...(collectReports !== undefined && { collectReports }),
      }),
    ...createApiAccess(settings, access),
    ...(tls !== undefined && { certificate: tls.certificate }),
    ...(settings['test.hooks'] && {
      routes: [...routes, ...createTestHookRoutes({ ...clock, advanceLetters: letterLoops.advance })],
    }),
    log,
  })
}

function listLags(kafka: Kafka): readonly KafkaLag[] {
  return kafka.listFigures().flatMap(({ cluster, groups }) => groups.map((each) => ({ cluster, ...each })))
}

/** A cluster that cannot be reached must not take the server out of service. */
function toKafkaCheck({ cluster, isUp, reason, checkedAt }: KafkaClusterHealth): HealthCheck {
  const state = { isUp: true, isDegraded: !isUp, reason, checkedAt: toDate(checkedAt) }
  return { name: `kafka:${cluster}`, componentType: 'component', read: () => state }
}

function createStop(
  app: FastifyInstance,
  drain: Drain,
  { connection, peekEngine, peekLetters, peekAccess, peekWebhooks }: StoreParts,
  { reconcileLoop, letterLoops, keyUseLoop }: BackgroundLoops,
  kafka: Kafka,
  log: Logger,
): RunningServer['stop'] {
  let whenStopped: Promise<void> | undefined
  let pushesEnded: Promise<unknown> = Promise.resolve()
  const finish = async (drained: Promise<number>): Promise<void> => {
    const aborted = await drained
    if (aborted > 0) log.warn({ requests: aborted }, 'requests were aborted: they took longer than the grace')
    await app.close()
    // Passes in progress finish, and letters release their locks for other servers; then nothing uses the
    // store.
    await kafka.stop()
    const lettersClosed = letterLoops.stop().then(() => peekLetters()?.close())
    const closed = Promise.all([
      peekEngine()?.close(),
      reconcileLoop.stop(),
      lettersClosed.catch(() => undefined),
      pushesEnded,
      keyUseLoop
        .stop()
        .then(() => peekAccess()?.recordKeyUses())
        .catch(() => undefined),
    ]).then(() => connection.stop())
    await waitForStoreClose(closed, log)
    log.info('redrive has stopped')
  }
  return (graceMs) => {
    const drained = drain.stop(graceMs)
    // Closing the engine answers the waiting lease calls now, so that the stop need not wait for them.
    void peekEngine()
      ?.close()
      .catch(() => undefined)
    void letterLoops.stop()
    void kafka.stop()
    // A second call with a shorter grace aborts the pushes that are left.
    pushesEnded = Promise.all([
      pushesEnded,
      peekWebhooks()
        ?.stop(graceMs)
        .catch(() => undefined),
    ])
    whenStopped ??= finish(drained)
    return whenStopped
  }
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
    throw toPortError(error, host, port)
  })
}

function toPortError(error: NodeJS.ErrnoException, host: string, port: number): unknown {
  switch (error.code) {
    case 'EADDRINUSE':
      return new KnownError('PORT_TAKEN', `port ${port} on ${host} is taken by another program`, error)
    case 'EACCES':
      return new KnownError(
        'PORT_REFUSED',
        `the operating system does not allow listening on port ${port} of ${host}`,
        error,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new KnownError('PORT_REFUSED', `${host} is not an address of this machine`, error)
    default:
      return error
  }
}

function toUrl({ address, family, port }: AddressInfo, isTls: boolean): string {
  return `${isTls ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

async function waitForStoreClose(closed: Promise<void>, log: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn({ ms: storeCloseMsMax }, 'the store did not close in time; acknowledged writes are safe')
      resolve()
    }, storeCloseMsMax)
  })
  await Promise.race([closed, timeout]).finally(() => clearTimeout(timer))
}
