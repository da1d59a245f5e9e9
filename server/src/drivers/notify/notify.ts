/**
 * Notifications about alerts. They wait in the system queue `_alerts`, one item for each channel, so that a
 * restart loses none and two servers do not send one twice. This driver leases them like any worker, sends
 * them, and completes or retries them.
 */
import type { ChannelConfig } from '../../core/alerts/channel.ts'
import type { Notification } from '../../core/alerts/notification.ts'
import type { Import } from '../../storage/contract/items.ts'

export interface AlertSender {
  /** Creates the system queues if they do not exist. Call it before a write with commands of `toCommands`. */
  prepare(): Promise<void>
  /**
   * The commands that queue a notification for channels, for the transaction that changes its alerts. A
   * notification that is still queued for a channel is not queued again.
   */
  toCommands(notification: Notification, channels: readonly string[]): readonly Import[]
  /** The names of all channels of a namespace. */
  listChannels(namespace: string): Promise<readonly string[]>
  /** Sends a test message now. Never rejects because of the channel. */
  sendTest(channel: ChannelConfig): Promise<ChannelResult>
}

export type ChannelResult = Readonly<{
  isDelivered: boolean
  latencyMs: number
  /** The HTTP status or the reply code of the SMTP server; null: no answer arrived. */
  status: number | null
  /** Null if the message was delivered. */
  error: ChannelError | null
}>

/** `message`: one sentence without secrets. `response`: the first bytes of the answer of the service. */
export type ChannelError = Readonly<{ code: string; message: string; response: string | null }>
