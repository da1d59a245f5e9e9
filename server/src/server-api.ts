import { createApi } from './api/create-api.ts'
import { toDlqLimits } from './api/dlq/limits.ts'
import { toHttpLimits } from './api/http/connections/http-limits.ts'
import { routes } from './api/routes.ts'
import { createTestHookRoutes, type TestHooks } from './api/test-hooks/routes.ts'
import { toGateway } from './config/webhook-gateway.ts'
import { toDate } from './core/time/instant.ts'
import type { Kafka } from './drivers/kafka/kafka.ts'
import type { Alerts } from './ops/alerts/alerts.ts'
import { labelValuesMax } from './ops/metrics/labelled-totals.ts'
import { readLetterFigures } from './ops/metrics/letter-metrics.ts'
import { createMetrics } from './ops/metrics/metrics.ts'
import type { Watching } from './ops/watching/watching.ts'
import { createApiAccess, type ServerTls } from './server-access.ts'
import type { ServerClock } from './server-clock.ts'
import { createHealthReports } from './server-health.ts'
import { toKafkaFigures } from './server-kafka.ts'
import type { BackgroundLoops } from './server-loops.ts'
import type { NotifyParts } from './server-notify.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'
import type { ServerTracing } from './server-tracing.ts'
import { toWebhookOptions } from './server-webhooks.ts'
import { version } from './version.ts'
export function createServerApi(
  options: ServerOptions,
  parts: StoreParts,
  loops: BackgroundLoops,
  kafka: Kafka,
  watching: Watching,
  { notifier, notificationMetrics }: NotifyParts,
  alerts: Alerts,
  clock: ServerClock,
  tls: ServerTls | undefined,
  traced: ServerTracing | undefined,
): ReturnType<typeof createApi> {
  const { settings, store, log, collectReports } = options
  const { connection, letterTotals, accessTotals, storeTimes, engine, letters, access, webhooks } = parts
  const { clockSkew, peekWebhooks, pushMetrics } = parts
  const { reconciler, letterLoops } = loops
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
    watching,
    notifier,
    alerts,
    ...createHealthReports(options, parts, loops, kafka, watching),
    createMetrics: (countConnections) =>
      createMetrics({
        version,
        storeKind: store.kind,
        isStoreUp: () => connection.state().isUp,
        readCounts: async () => connection.storage().readQueueCounts({ countMax: labelValuesMax }),
        readLetters: async () => readLetterFigures(connection.storage()),
        letterTotals,
        accessTotals,
        storeTimes,
        pushes: pushMetrics,
        notifications: notificationMetrics,
        ...(traced !== undefined && { spans: traced.metrics }),
        readDeadJobs: async () => connection.storage().listConsumerCounts(),
        countAlerts: async () => connection.storage().countAlerts(),
        readDispatch: () => peekWebhooks()?.dispatcher.counts(),
        countConnections,
        readClockOffsetSeconds: clockSkew.readOffsetSeconds,
        getReconcileState: reconciler.state,
        ...(kafka.clusters.length > 0 && { kafka: toKafkaFigures(kafka) }),
        peekWatchReport: watching.peekReport,
        ...(watching.redis().isConfigured && { isRedisUp: () => watching.redis().reason === null }),
        ...(collectReports !== undefined && { collectReports }),
      }),
    ...createApiAccess(settings, access, (reason) => accessTotals.internal.add(reason, 1)),
    ...(tls !== undefined && { certificate: tls.certificate }),
    ...(settings['test.hooks'] && {
      routes: [...routes, ...createTestHookRoutes(toTestHooks(clock, letterLoops, watching, alerts))],
    }),
    log,
  })
}

/** Everything that is due by the time of the clock is done when `advanceLetters` resolves. */
function toTestHooks(
  clock: ServerClock,
  letterLoops: BackgroundLoops['letterLoops'],
  watching: Watching,
  alerts: Alerts,
): TestHooks {
  const advanceLetters = async (): Promise<void> => {
    await letterLoops.advance()
    await watching.pass()
    await alerts.pass()
  }
  return { ...clock, advanceLetters }
}
