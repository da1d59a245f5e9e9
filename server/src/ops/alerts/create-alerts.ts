import type { Alert } from '../../core/alerts/alert.ts'
import type { Notification } from '../../core/alerts/notification.ts'
import type { NotificationPlan } from '../../core/alerts/plan-notifications.ts'
import { planPass } from '../../core/alerts/plan-pass.ts'
import type { AlertRule } from '../../core/alerts/rule.ts'
import type { Queue } from '../../core/items/queue.ts'
import type { Clock, Instant } from '../../core/time/instant.ts'
import type { Engine } from '../../engine/engine.ts'
import { KnownError } from '../../errors.ts'
import type { HeldLock } from '../../storage/contract/locks.ts'
import type { Command } from '../../storage/contract/storage.ts'
import type { Logger } from '../log/log.ts'
import { addSamples } from './add-samples.ts'
import type { Alerts } from './alerts.ts'
import { createDecide } from './decide-alert.ts'
import { type FactParts, readFacts } from './read-facts.ts'
import { createRules } from './rules.ts'
import { toAlert, toStoredAlert } from './stored-alert.ts'
import { toNotification } from './to-notification.ts'

/** The queue of notifications (drivers/notify). */
export interface NotificationQueue {
  /** Called before a write with the commands of `toCommands`. */
  prepare(): Promise<void>
  toCommands(notification: Notification, channels: readonly string[]): readonly Command[]
  /** The names of all channels of a namespace. */
  listChannels(namespace: string): Promise<readonly string[]>
}

export type AlertsParts = FactParts &
  Readonly<{
    engine: () => Pick<Engine, 'write'>
    notifications: () => NotificationQueue
    clock: Clock
    owner: string
    /** How long the lock outlives a server that ended without releasing it. */
    lockUs: number
    configuredRules: readonly AlertRule[]
    /** Ended alerts are kept for this time. */
    retentionUs: number
    publicUrl: string | null
    createId: () => string
    log: Logger
  }>

const lockName = 'alerts'
/** The pass loses races only against people, who change one alert at a time. */
const attemptsMax = 3
/** Tracked alerts of all rules. */
const trackedMax = 10_000
const pruneUs = 600_000_000
const pruned = { keptMax: 100_000, countMax: 10_000 } as const

export function createAlerts(parts: AlertsParts): Alerts {
  const { clock, log } = parts
  const rules = createRules({ ...parts, configured: parts.configuredRules })
  const lock = createLock(parts)
  let prunedAt: Instant | null = null
  const evaluate = async (held: HeldLock): Promise<void> => {
    const known = await rules.list()
    const listed = await parts.storage().listAlerts({ isTracked: true, countMax: trackedMax })
    const tracked = listed.map(toAlert)
    const now = clock.now()
    const { facts, notices } = await readFacts(parts, known, tracked, now)
    const plan = planPass(known, facts, tracked, parts.createId)
    const room = trackedMax - tracked.length
    const fitting = limitNew(plan.changed, room)
    if (fitting.length < plan.changed.length)
      log.warn({ alerts_max: trackedMax }, 'THERE ARE TOO MANY ALERTS: some are not tracked')
    const changed = await addSamples(parts.storage(), fitting)
    const notifications = await createNotifications(parts, plan.notifications, changed, now)
    const commands: Command[] = [
      { op: 'put-alerts', alerts: changed.map(toStoredAlert) },
      { op: 'remove-alerts', alerts: plan.removed.map(({ id, version }) => ({ id, version })) },
      { op: 'clear-group-notices', notices },
      ...notifications,
    ]
    const isNothing = changed.length + plan.removed.length + notices.length + notifications.length === 0
    if (!isNothing) await parts.engine().write([{ op: 'fence', lock: held }, ...commands])
  }
  const prune = async (held: HeldLock): Promise<void> => {
    const now = clock.now()
    if (prunedAt !== null && now - prunedAt < pruneUs) return
    const before = now - parts.retentionUs
    await parts.engine().write([
      { op: 'fence', lock: held },
      { op: 'prune-alerts', before, ...pruned },
    ])
    prunedAt = now
  }
  const run = async (): Promise<void> => {
    const held = await lock.hold()
    if (held === null) return
    try {
      await retryChanged(() => evaluate(held))
      await prune(held)
    } catch (error) {
      lock.forget()
      throw error
    }
  }
  // Passes never overlap.
  let last: Promise<void> = Promise.resolve()
  return {
    rules,
    decide: createDecide(parts),
    pass: () => {
      const result = last.then(run)
      last = result.catch(() => undefined)
      return result
    },
    close: lock.release,
  }
}

/** New alerts beyond the limit are left out. */
function limitNew(changed: readonly Alert[], room: number): readonly Alert[] {
  let left = room
  return changed.filter(({ version }) => version > 0 || left-- > 0)
}

async function retryChanged(run: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await run()
      return
    } catch (error) {
      const isRace = error instanceof KnownError && error.code === 'ALERT_CHANGED'
      if (!isRace || attempt === attemptsMax) throw error
    }
  }
}

async function createNotifications(
  parts: AlertsParts,
  plans: readonly NotificationPlan[],
  changed: readonly Alert[],
  now: Instant,
): Promise<readonly Command[]> {
  if (plans.length === 0) return []
  const queue = parts.notifications()
  const byId = new Map(changed.map((alert) => [alert.id, alert]))
  // With the samples that were added after planning.
  const sampled = plans.map((plan) => ({
    ...plan,
    alerts: plan.alerts.flatMap(({ id }) => byId.get(id) ?? []),
  }))
  const queues = await readQueues(parts, sampled)
  const channels = new Map<string, readonly string[]>()
  const commands: Command[] = []
  for (const plan of sampled) {
    const { namespace } = plan.rule
    const known = channels.get(namespace) ?? (await queue.listChannels(namespace))
    channels.set(namespace, known)
    const named = plan.rule.channels
    const wanted = named === null ? known : known.filter((each) => named.includes(each))
    if (wanted.length === 0) continue
    const texts = { id: parts.createId(), now, publicUrl: parts.publicUrl, queues }
    commands.push(...queue.toCommands(toNotification(plan, texts), wanted))
  }
  if (commands.length > 0) await queue.prepare()
  return commands
}

async function readQueues(
  { storage }: AlertsParts,
  plans: readonly NotificationPlan[],
): Promise<ReadonlyMap<string, Queue>> {
  const names = new Set(plans.flatMap(({ alerts }) => alerts.flatMap(({ queue }) => queue ?? [])))
  const found = await Promise.all([...names].map((name) => storage().getQueue(name)))
  return new Map(found.flatMap((queue) => (queue === null ? [] : [[queue.name, queue] as const])))
}

/** Holds the lock from pass to pass, and renews it when half of its time is over. */
function createLock({ engine, clock, owner, lockUs }: AlertsParts) {
  let held: HeldLock | null = null
  let renewAt: Instant = 0
  return {
    /** Null: another server has it. */
    hold: async (): Promise<HeldLock | null> => {
      const now = clock.now()
      const isFresh = held !== null && now < renewAt && now > renewAt - lockUs
      if (isFresh) return held
      const acquire = { op: 'acquire-lock', name: lockName, owner, now, deadline: now + lockUs } as const
      const [acquired] = await engine().write([acquire])
      held = acquired
      renewAt = now + lockUs / 2
      return held
    },
    forget: () => {
      held = null
    },
    release: async (): Promise<void> => {
      const lock = held
      held = null
      if (lock !== null) await engine().write([{ op: 'release-lock', lock }])
    },
  }
}
