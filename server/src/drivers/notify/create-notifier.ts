/** The parts of a server that send notifications. */
import type { ChannelKind } from '../../core/alerts/channel.ts'
import type { SendResult } from '../../core/alerts/delivery/decide-delivery.ts'
import { createTestNotifications } from '../../core/alerts/test-notification.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { Engine } from '../../engine/engine.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { AddressRules } from '../webhook/push/sender.ts'
import type { AlertChannels } from './channels.ts'
import type { AlertSender, ChannelResult } from './notify.ts'
import { createAlertQueues, toImport, toItem } from './queue/alert-queue.ts'
import { createDeliverer } from './queue/deliverer.ts'
import { createLaneRunner, type DeliveryReport } from './queue/lane-runner.ts'
import { createChannelSender } from './send/create-channel-sender.ts'

export interface Notifier extends AlertSender {
  readonly channels: AlertChannels
  start(): void
  /** Attempts in progress may take `graceMs` longer. */
  stop(graceMs: number): Promise<void>
}

export type NotifierParts = Readonly<{
  engine: () => Engine
  storage: () => StoreReads
  clock: Clock
  channels: AlertChannels
  addresses: AddressRules
  timeoutMs: number
  giveUpUs: number
  /** For tests. Default: what the services allow. */
  gapMs?: (kind: ChannelKind) => number
  absentMs?: number
  onAttempt(report: DeliveryReport): void
  onError(error: unknown): void
}>

const parallelMax = 32
const absentMsDefault = 5_000

/** Slack takes one message per second and webhook, Discord five in 2 s, Telegram one per second and chat. */
const gaps: Readonly<Partial<Record<ChannelKind, number>>> = {
  slack: 1_000,
  discord: 500,
  telegram: 1_000,
  teams: 500,
}

export function createNotifier(parts: NotifierParts): Notifier {
  const { engine, storage, clock, addresses, timeoutMs, giveUpUs, onAttempt, onError } = parts
  const sender = createChannelSender({ addresses, clock, timeoutMs })
  const lanes = createLaneRunner({
    engine,
    clock,
    channels: parts.channels,
    sender,
    rules: { giveUpUs },
    gapMs: parts.gapMs ?? ((kind) => gaps[kind] ?? 0),
    onAttempt,
    onError,
  })
  let isPrepared = false
  const deliverer = createDeliverer({
    engine,
    storage,
    clock,
    lanes,
    parallelMax,
    absentMs: parts.absentMs ?? absentMsDefault,
    onAbsent: () => {
      isPrepared = false
    },
    onError,
  })
  return {
    channels: parts.channels,
    prepare: async () => {
      if (isPrepared) return
      await createAlertQueues(engine())
      isPrepared = true
      deliverer.wake()
    },
    toCommands: (notification, channels) =>
      channels.length === 0
        ? []
        : [
            toImport(
              channels.map((channel) => toItem(notification, channel)),
              clock.now(),
            ),
          ],
    listChannels: async (namespace) =>
      (await parts.channels.list()).filter((each) => each.namespace === namespace).map(({ name }) => name),
    sendTest: async (channel) => {
      const results = []
      for (const notification of createTestNotifications(channel, clock.now())) {
        results.push(await sender.send(channel.target, notification))
      }
      return toChannelResult(results)
    },
    start: () => deliverer.start(),
    stop: async (graceMs) => {
      await deliverer.stop(graceMs)
      await sender.close()
    },
  }
}

/** The first failure counts. */
function toChannelResult(results: readonly SendResult[]): ChannelResult {
  const latencyMs = Math.round(results.reduce((sum, result) => sum + result.latencyMs, 0))
  const failed = results.find((result) => !result.isDelivered)
  if (failed === undefined || failed.isDelivered) {
    const refused = results.flatMap((result) => (result.isDelivered ? (result.refused ?? []) : []))
    const error =
      refused.length === 0
        ? null
        : { code: 'refused', message: `refused recipients: ${refused.join(', ')}`, response: null }
    return { isDelivered: true, latencyMs, status: results.at(-1)?.status ?? null, error }
  }
  const { errorCode: code, message, response, status } = failed
  return { isDelivered: false, latencyMs, status, error: { code, message, response } }
}
