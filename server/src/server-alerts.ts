/** The alerts of a server, from its settings. */
import { randomBytes, randomInt } from 'node:crypto'
import type { TopicFact } from './core/alerts/facts.ts'
import { createXidGenerator } from './core/ids/xid.ts'
import { usPerMs } from './core/time/instant.ts'
import type { Kafka } from './drivers/kafka/kafka.ts'
import { createLoop } from './engine/loop.ts'
import { KnownError } from './errors.ts'
import type { Alerts } from './ops/alerts/alerts.ts'
import { createAlerts, type NotificationQueue } from './ops/alerts/create-alerts.ts'
import { createConsumerReader } from './ops/alerts/stopped-consumers.ts'
import { findingsMax, type Watching } from './ops/watching/watching.ts'
import type { ServerClock } from './server-clock.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'

export type AlertLoop = Readonly<{ alerts: Alerts; start(): void; stop(): Promise<void> }>

/** A server that is killed gives the lock away after this number of passes. */
const lockPasses = 4
const lockUsMin = 5_000_000

export function createServerAlerts(
  { settings, log }: ServerOptions,
  { connection, engine }: StoreParts,
  kafka: Kafka,
  watching: Watching,
  notifier: NotificationQueue,
  clock: ServerClock,
  owner: string,
): AlertLoop {
  const nextId = createXidGenerator({
    machine: randomBytes(3),
    processId: process.pid,
    counterStart: randomInt(2 ** 24),
  })
  const intervalMs = settings['alerts.check_interval']
  const { storage } = connection
  const alerts = createAlerts({
    storage,
    engine,
    notifications: () => notifier,
    clock,
    owner,
    lockUs: Math.max(lockPasses * intervalMs * usPerMs, lockUsMin),
    configuredRules: settings['alerts.rules'],
    retentionUs: settings['alerts.retention'] * usPerMs,
    publicUrl: settings['alerts.public_url'] ?? null,
    createId: () => nextId(clock.now()),
    log,
    readFindings: async () => {
      const findings = await watching.readFindings()
      return { findings, isCut: findings.length >= findingsMax }
    },
    listTopics: () => listTopics(kafka),
    listUnknownClusters: () => listUnknownClusters(kafka),
    readConsumers: createConsumerReader({ storage, clock }),
    readCountDrift: () => watching.peekReport()?.countDrift ?? 0,
  })
  const loop = createLoop(intervalMs, alerts.pass, (error) => {
    if (!isStoreUnavailable(error)) log.warn({ err: error }, 'alerts could not be checked; will retry')
  })
  return {
    alerts,
    start: loop.start,
    stop: async () => {
      await loop.stop()
      await alerts.close().catch(() => undefined)
    },
  }
}

function listTopics(kafka: Kafka): TopicFact[] {
  return kafka.listFigures().flatMap(({ cluster, topics }) =>
    topics.map(({ topic, queue, unreadCount, isLosingSoon }) => ({
      cluster,
      topic,
      queue,
      unreadCount,
      isLosingSoon,
    })),
  )
}

/** The figures of a cluster that cannot be reached are old. */
function listUnknownClusters(kafka: Kafka): string[] {
  const unread = kafka.listFigures().filter(({ readAt }) => readAt === null)
  const down = kafka.health().filter(({ isUp }) => !isUp)
  return [...new Set([...unread, ...down].map(({ cluster }) => cluster))]
}

function isStoreUnavailable(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'STORE_UNAVAILABLE'
}
