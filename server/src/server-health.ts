/** The health reports of a server, from its parts. */
import type { ApiContext } from './api/context.ts'
import { toLagThresholds } from './config/watching-settings.ts'
import type { Kafka } from './drivers/kafka/kafka.ts'
import { readActuatorHealth } from './ops/health/actuator-health.ts'
import { type Component, type HealthCheck, readHealth } from './ops/health/health.ts'
import type { Watching } from './ops/watching/watching.ts'
import { listLags, toKafkaCheck } from './server-kafka.ts'
import type { BackgroundLoops } from './server-loops.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'
import { version } from './version.ts'

/** Every report is read without waiting. */
export function createHealthReports(
  { settings, store }: ServerOptions,
  { connection, clockSkew }: Pick<StoreParts, 'connection' | 'clockSkew'>,
  { reconciler }: Pick<BackgroundLoops, 'reconciler'>,
  kafka: Kafka,
  watching: Watching,
): Pick<ApiContext, 'health' | 'readActuator'> {
  const readStoreState = (): Component => {
    const { isUp, publicReason, checkedAt } = connection.state()
    return { isUp, reason: publicReason, checkedAt }
  }
  // A SQLite store has no clock to compare with.
  const hasClock = store.kind === 'postgres'
  const checks: readonly HealthCheck[] = [
    { name: 'queues:storage', componentType: 'datastore', read: readStoreState },
    ...(hasClock ? [{ name: 'clock:offset', componentType: 'system', read: clockSkew.state } as const] : []),
  ]
  const thresholds = toLagThresholds(settings)
  return {
    health: () => readHealth([...checks, ...kafka.health().map(toKafkaCheck)], version),
    readActuator: () => {
      const report = watching.peekReport()
      return readActuatorHealth({
        store: readStoreState(),
        storeKind: store.kind,
        clock: hasClock ? clockSkew.state() : undefined,
        clusters: kafka.health(),
        lags: listLags(kafka),
        thresholds,
        report,
        redis: watching.redis(),
        countDrift: Math.max(reconciler.state().differences, report?.countDrift ?? 0),
      })
    },
  }
}
