import { pino } from 'pino'
import type { ConsumerFact, TopicFact } from '../../src/core/alerts/facts.ts'
import type { Notification } from '../../src/core/alerts/notification.ts'
import type { AlertRule } from '../../src/core/alerts/rule.ts'
import type { Finding } from '../../src/core/watching/findings.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Alerts } from '../../src/ops/alerts/alerts.ts'
import { createAlerts } from '../../src/ops/alerts/create-alerts.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { bytes, noon } from '../make.ts'

export type TestAlertOptions = Readonly<{
  clock?: Readonly<{ now(): number }>
  owner?: string
  rules?: readonly AlertRule[]
  /** The queue that takes notifications as items; undefined: there are no channels. */
  queue?: string
  findings?: () => readonly Finding[]
  consumers?: () => readonly ConsumerFact[]
  topics?: () => readonly TopicFact[]
  unknownClusters?: () => readonly string[]
  countDrift?: () => number
}>

let ids = 0

/** Alerts whose passes and clock the test controls. Each notification becomes an item with its JSON. */
export function createTestAlerts(
  storage: Storage,
  engine: Pick<Engine, 'write'> = storage,
  options: TestAlertOptions = {},
): Alerts {
  const { clock = { now: () => noon }, queue } = options
  return createAlerts({
    storage: () => storage,
    engine: () => engine,
    notifications: () => ({
      prepare: async () => undefined,
      listChannels: async () => (queue === undefined ? [] : [queue]),
      toCommands: (notification, channels) =>
        channels.map((name) => ({
          op: 'produce',
          queue: name,
          partition: 0,
          items: [{ payload: bytes(JSON.stringify(notification)) }],
          now: clock.now(),
        })),
    }),
    clock,
    owner: options.owner ?? 'server-1',
    lockUs: 60_000_000,
    configuredRules: options.rules ?? [],
    retentionUs: 30 * 86_400_000_000,
    publicUrl: null,
    createId: () => `alert-${String(++ids).padStart(12, '0')}`,
    log: pino({ level: 'silent' }),
    readFindings: async () => ({ findings: options.findings?.() ?? [], isCut: false }),
    listTopics: () => options.topics?.() ?? [],
    listUnknownClusters: () => options.unknownClusters?.() ?? [],
    readConsumers: async () => options.consumers?.() ?? [],
    readCountDrift: () => options.countDrift?.() ?? 0,
  })
}

/** The notifications in a queue, oldest first. */
export async function listNotifications(storage: Storage, queue: string): Promise<readonly Notification[]> {
  const items = await storage.listItems({ queue, countMax: 1_000 })
  return items.map(({ payload }) => JSON.parse(Buffer.from(payload).toString()) as Notification)
}
