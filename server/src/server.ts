/**
 * Creates the parts of a server and connects them. Only this file and the `server-*.ts` files beside it name
 * concrete parts.
 *
 * - Start: check protected mode, open the store, open the port, start the background loops.
 * - Stop: refuse new requests, wait for requests in progress, stop the loops, close the store.
 */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Drain } from './api/http/connections/drain.ts'
import type { Kafka } from './drivers/kafka/kafka.ts'
import type { Logger } from './ops/log/log.ts'
import type { MetricReport } from './ops/metrics/combined-metrics.ts'
import { checkHost, createTlsLoop, readTls, toIdentityProvider } from './server-access.ts'
import { type AlertLoop, createServerAlerts } from './server-alerts.ts'
import { createServerApi } from './server-api.ts'
import { createServerClock } from './server-clock.ts'
import { createKafkaDriver } from './server-kafka.ts'
import { listen, toUrl } from './server-listen.ts'
import { type BackgroundLoops, createBackgroundLoops } from './server-loops.ts'
import { createServerNotify, type NotifyParts } from './server-notify.ts'
import type { ServerOptions } from './server-options.ts'
import { createStoreParts, type StoreParts } from './server-store.ts'
import { createServerTracing } from './server-tracing.ts'
import { createServerWatching, type WatchingParts } from './server-watching.ts'
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

/**
 * How long closing the store may take after the grace: for writes in progress, or an unreachable database.
 */
const storeCloseMsMax = 5_000

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
  const traced = await createServerTracing(options)
  const parts = createStoreParts(options, clock, owner, traced?.tracing)
  const kafka = createKafkaDriver(options, parts, clock, traced?.tracing)
  const watchingParts = createServerWatching(options, parts, kafka, clock, owner)
  const { watching, watchingLoop } = watchingParts
  const notify = createServerNotify(options, parts, clock)
  const alertLoop = createServerAlerts(options, parts, kafka, watching, notify.notifier, clock, owner)
  const loops = createBackgroundLoops(options, parts, clock, owner, watching.countComparison)
  const { app, drain, metrics } = await createServerApi(
    options,
    parts,
    loops,
    kafka,
    watching,
    notify,
    alertLoop.alerts,
    clock,
    tls,
    traced,
  )
  try {
    await parts.connection.start()
    await listen(app, settings.host, settings.port)
  } catch (error) {
    await app.close()
    const closed = Promise.resolve(parts.peekEngine()?.close()).then(() => parts.connection.stop())
    await waitForStoreClose(closed, log)
    await traced?.tracing.stop()
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
    notify.notifier.start()
    alertLoop.start()
  }
  watchingLoop.start()
  const stopServer = createStop(app, drain, parts, loops, kafka, watchingParts, notify, alertLoop, log)
  const stop: RunningServer['stop'] = async (graceMs) => {
    void tlsLoop?.stop()
    await stopServer(graceMs)
    await traced?.tracing.stop()
  }
  return { url, stop, reportMetrics: metrics.report }
}

function createStop(
  app: FastifyInstance,
  drain: Drain,
  { connection, peekEngine, peekLetters, peekAccess, peekWebhooks }: StoreParts,
  { reconcileLoop, letterLoops, keyUseLoop }: BackgroundLoops,
  kafka: Kafka,
  { watching, watchingLoop }: WatchingParts,
  { notifier }: NotifyParts,
  alertLoop: AlertLoop,
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
    await alertLoop.stop()
    const lettersClosed = letterLoops.stop().then(() => peekLetters()?.close())
    const watchingClosed = watchingLoop.stop().then(() => watching.close())
    const closed = Promise.all([
      peekEngine()?.close(),
      watchingClosed.catch(() => undefined),
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
      notifier.stop(graceMs).catch(() => undefined),
    ])
    whenStopped ??= finish(drained)
    return whenStopped
  }
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
