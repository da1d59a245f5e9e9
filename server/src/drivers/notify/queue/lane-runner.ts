/** Sends the notifications of one channel, one after the other, and stores the outcome of each. */
import type { ChannelKind, ChannelTarget } from '../../../core/alerts/channel.ts'
import {
  type DeliveryRules,
  decideDelivery,
  type FailedSend,
  type SendResult,
} from '../../../core/alerts/delivery/decide-delivery.ts'
import type { LeasedNotification } from '../../../core/alerts/delivery/plan-order.ts'
import { encodeMessage, type QueuedMessage } from '../../../core/alerts/notification-json.ts'
import type { ItemId } from '../../../core/ids/ids.ts'
import { type Clock, type Instant, usPerMs, usPerSecond } from '../../../core/time/instant.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { Complete, Import, Retry } from '../../../storage/contract/items.ts'
import type { AlertChannels } from '../channels.ts'
import type { ChannelSender } from '../send/create-channel-sender.ts'
import { alertPartition, alertQueue, toImport, toItem } from './alert-queue.ts'

export type LaneItem = LeasedNotification &
  Readonly<{ id: ItemId; message: QueuedMessage; queuedAt: Instant; leaseDeadline: Instant }>

/** `retried`: the attempt failed, and another one follows. `failed`: the notification was given up. */
export type DeliveryOutcome = 'delivered' | 'retried' | 'failed'
export type DeliveryReport = Readonly<{
  kind: ChannelKind | 'unknown'
  channel: string
  notification: string
  outcome: DeliveryOutcome
  result: SendResult
}>

export type LaneRunnerParts = Readonly<{
  engine: () => Engine
  clock: Clock
  channels: Pick<AlertChannels, 'find'>
  sender: ChannelSender
  rules: DeliveryRules
  /** The time between two messages to a channel, in ms. */
  gapMs(kind: ChannelKind): number
  onAttempt(report: DeliveryReport): void
  onError(error: unknown): void
}>

export interface LaneRunner {
  /** Resolves when nothing of the lane is leased by this server any more. */
  run(items: readonly LaneItem[]): Promise<void>
  /** Ends all attempts. Their notifications are given back. */
  abort(): void
}

/** A lane gives the rest back, so that its leases do not end while it works on the first ones. */
const laneMsMax = 20_000
/** A channel that was just configured may not be known to each server yet. */
const unknownUsMax = 900 * usPerSecond
const settleRetryMs = 500
const remainingUsMin = 60 * usPerSecond
const target = { queue: alertQueue, partition: alertPartition } as const
const sentMax = 1_000

export function createLaneRunner(parts: LaneRunnerParts): LaneRunner {
  const stopping = new AbortController()
  /** When each channel got its last message. */
  const lastSentMs = new Map<string, number>()

  const waitForGap = async (channel: string, kind: ChannelKind): Promise<void> => {
    const waitMs =
      (lastSentMs.get(channel) ?? Number.NEGATIVE_INFINITY) + parts.gapMs(kind) - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
  }

  const attempt = async ({ channel, message, queuedAt }: LaneItem) => {
    const { notification, only } = message
    const found = await findChannel(parts, channel, queuedAt)
    if ('isDelivered' in found) return { kind: 'unknown', result: found } as const
    await waitForGap(channel, found.kind)
    const options = only === undefined ? {} : { only }
    const result = await parts.sender.send(found, notification, options)
    // From the answer on, so that the service sees the gap, however long the message was on its way.
    if (lastSentMs.size >= sentMax) lastSentMs.clear()
    lastSentMs.set(channel, performance.now())
    return { kind: found.kind, result } as const
  }

  /** The time until which the rest of the lane has to wait; undefined: the next one can be sent. */
  const deliver = async (item: LaneItem): Promise<Instant | undefined> => {
    const { kind, result } = await attempt(item)
    if (stopping.signal.aborted && !result.isDelivered) {
      await giveBack(parts, [item], null)
      return parts.clock.now()
    }
    const report = { kind, channel: item.channel, notification: item.message.notification.id, result }
    if (result.isDelivered) {
      await settle(parts, item, toCompletion(item, result.remaining ?? [], parts.clock.now()))
      parts.onAttempt({ ...report, outcome: 'delivered' })
      return undefined
    }
    const decision = decideDelivery(result, item.queuedAt, parts.rules, Math.random(), parts.clock.now())
    const isDead = decision.kind === 'dead'
    const { errorCode, errorClass } = result
    const error = { errorCode, errorClass, message: toMessage(item.channel, result) }
    const availableAt = isDead ? null : decision.availableAt
    const items = [{ id: item.id, isDead, error, availableAt }]
    await settle(parts, item, [{ op: 'retry', ...target, items, now: parts.clock.now() }])
    parts.onAttempt({ ...report, outcome: isDead ? 'failed' : 'retried' })
    return isDead ? undefined : decision.availableAt
  }

  return {
    run: async (items) => {
      const endMs = performance.now() + laneMsMax
      for (const [at, item] of items.entries()) {
        const isLate = performance.now() > endMs || stopping.signal.aborted
        const blockedUntil = isLate ? parts.clock.now() : await deliver(item)
        if (blockedUntil === undefined) continue
        await giveBack(parts, items.slice(isLate ? at : at + 1), blockedUntil)
        return
      }
    },
    abort: () => {
      stopping.abort()
      parts.sender.abort()
    },
  }
}

/** The target of the channel, or why there is none. */
async function findChannel(
  { channels, clock }: LaneRunnerParts,
  name: string,
  queuedAt: Instant,
): Promise<ChannelTarget | FailedSend> {
  const failed = { isDelivered: false, latencyMs: 0, status: null, retryAfter: null, response: null } as const
  try {
    const channel = await channels.find(name)
    if (channel !== null) return channel.target
    const isPermanent = clock.now() - queuedAt > unknownUsMax
    const message = 'there is no channel with this name'
    return { ...failed, isPermanent, errorCode: 'channel_not_found', errorClass: 'ChannelNotFound', message }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const errorCode = error instanceof KnownError ? error.code : 'channel_unreadable'
    return { ...failed, isPermanent: false, errorCode, errorClass: 'ChannelUnreadable', message }
  }
}

/** With the answer of the service: it says what is wrong with a message or a key. */
function toMessage(channel: string, { message, response }: FailedSend): string {
  const answer = response === null ? '' : `: ${response.slice(0, 300)}`
  return `channel ${channel}: ${message}${answer}`
}

/**
 * Completes the item. Recipients that the SMTP server refused for the time being get an item of their own, in
 * the same transaction.
 */
function toCompletion(
  { id, message, queuedAt, rootId }: LaneItem,
  remaining: readonly string[],
  now: Instant,
): readonly [Complete, ...Import[]] {
  const complete: Complete = { op: 'complete', ...target, ids: [id], now }
  if (remaining.length === 0) return [complete]
  const rest = toItem(message.notification, message.channel)
  const payload = encodeMessage({ ...message, only: remaining, queuedAt })
  const availableAt = now + Math.max(remainingUsMin, now - queuedAt)
  const item = { ...rest, payload, sourceId: `${rest.sourceId}/${rootId}`, availableAt }
  return [complete, toImport([item], now)]
}

/**
 * Repeats a write until the lease ends: if the outcome is not stored, the message is sent again. It is
 * written directly, because the functions of the engine accept no calls while the server stops.
 */
async function settle(
  { engine, clock, onError }: LaneRunnerParts,
  { id, leaseDeadline }: LaneItem,
  commands: readonly [Complete | Retry, ...Import[]],
): Promise<void> {
  for (;;) {
    try {
      const [result] = await engine().write(commands)
      if (!result.isSettled) onError(new Error(`notification ${id} was no longer leased after its attempt`))
      return
    } catch (error) {
      onError(error)
      const isGone = error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND'
      if (isGone || clock.now() + settleRetryMs * usPerMs > leaseDeadline) return
      await new Promise((resolve) => setTimeout(resolve, settleRetryMs))
    }
  }
}

/** `until` null: the attempt did not count, for example because this server stops. */
async function giveBack(
  { engine, clock, onError }: LaneRunnerParts,
  items: readonly LaneItem[],
  until: Instant | null,
): Promise<void> {
  if (items.length === 0) return
  const ids = items.map(({ id }) => id)
  const now = clock.now()
  try {
    if (until === null) await engine().write([{ op: 'unlease', ...target, ids, now }])
    else {
      const returned = ids.map((id) => ({ id, isDead: false, availableAt: until, error: null }))
      await engine().write([{ op: 'retry', ...target, items: returned, now }])
    }
  } catch (error) {
    onError(error)
  }
}
