/** A store with an engine and a notifier, as a server has them, and a clock that only a test moves. */
import type { ChannelKind, FieldValues } from '../../src/core/alerts/channel.ts'
import { createChannels } from '../../src/drivers/notify/channels.ts'
import { createNotifier, type Notifier } from '../../src/drivers/notify/create-notifier.ts'
import { alertDeadQueue, alertQueue } from '../../src/drivers/notify/queue/alert-queue.ts'
import type { DeliveryReport } from '../../src/drivers/notify/queue/lane-runner.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import type { TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { hour, noon } from '../make.ts'

export type TestChannel = Readonly<{ name: string; kind: ChannelKind; values: FieldValues }>

export type NotifyNode = Readonly<{
  storage: Storage
  engine: Engine
  notifier: Notifier
  reports: DeliveryReport[]
  errors: unknown[]
  stop(graceMs?: number): Promise<void>
}>

export type TestClock = { now(): number; tick(us: number): void }

export function createTestClock(): TestClock {
  let now = noon
  return {
    now: () => now,
    tick: (us) => {
      now += us
    },
  }
}

export type NodeOptions = Readonly<{
  clock: TestClock
  channels: readonly TestChannel[]
  giveUpUs?: number
  timeoutMs?: number
  gapMs?: number
  isLoopbackAllowed?: boolean
  /** False: the notifier is created, but leases nothing. */
  isSending?: boolean
}>

export async function startNotifyNode(store: TestStore, options: NodeOptions): Promise<NotifyNode> {
  const { clock, channels, gapMs = 0 } = options
  const storage = await store.open({ clock })
  const engine = createEngine(storage, { clock, isTicking: false, random: () => 0.5 })
  const reports: DeliveryReport[] = []
  const errors: unknown[] = []
  const notifier = createNotifier({
    engine: () => engine,
    storage: () => storage,
    clock,
    channels: createChannels<string>({
      configured: channels.map(({ name, kind, values }) => ({
        name,
        namespace: '_system',
        kind,
        shown: values,
        secrets: {},
      })),
      readSecret: async (secret) => secret,
      storage: () => storage,
      engine: () => engine,
      clock,
    }),
    addresses: { isLoopbackAllowed: options.isLoopbackAllowed ?? true, allowed: [] },
    timeoutMs: options.timeoutMs ?? 5_000,
    giveUpUs: options.giveUpUs ?? 24 * hour,
    gapMs: () => gapMs,
    absentMs: 20,
    onAttempt: (report) => void reports.push(report),
    onError: (error) => void errors.push(error),
  })
  if (options.isSending ?? true) notifier.start()
  return {
    storage,
    engine,
    notifier,
    reports,
    errors,
    stop: async (graceMs = 1_000) => {
      await notifier.stop(graceMs)
      await engine.close()
      await storage.close()
    },
  }
}

/** Queues a notification as the evaluation of rules does: in one write. */
export async function queueNotification(
  { notifier, engine }: Pick<NotifyNode, 'notifier' | 'engine'>,
  notification: Parameters<Notifier['toCommands']>[0],
  channels: readonly string[],
): Promise<void> {
  await notifier.prepare()
  await engine.write(notifier.toCommands(notification, channels))
}

export async function listQueue({ storage }: Pick<NotifyNode, 'storage'>, queue = alertQueue) {
  return storage.listItems({ queue, countMax: 1_000 })
}

/** Resolves with the dead letters once there are `count`. */
export async function waitForDead(node: Pick<NotifyNode, 'storage'>, count: number) {
  await pollUntil(
    async () => (await listQueue(node, alertDeadQueue)).length,
    (found) => found === count,
  )
  return listQueue(node, alertDeadQueue)
}

/** Moves the clock until the queue is empty. */
export async function waitUntilEmpty(
  node: Pick<NotifyNode, 'storage' | 'engine'>,
  clock: TestClock,
): Promise<void> {
  await advanceUntil(node, clock, async () => (await listQueue(node)).length === 0)
}

/** Moves the clock to each time at which something is due, until `isDone`. */
export async function advanceUntil(
  { storage, engine }: Pick<NotifyNode, 'storage' | 'engine'>,
  clock: TestClock,
  isDone: () => boolean | Promise<boolean>,
): Promise<void> {
  const endMs = Date.now() + 30_000
  while (!(await isDone())) {
    if (Date.now() > endMs) throw new Error('it does not end')
    const dueAt = await storage.readNextDueAt()
    // An attempt in progress has a lease, which ends later than any retry.
    const isLeased = (await listQueue({ storage })).some(({ state }) => state === 'leased')
    if (isLeased || dueAt === null || dueAt > noon + 100 * hour) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      continue
    }
    if (dueAt > clock.now()) clock.tick(dueAt - clock.now())
    await engine.advance()
  }
}
