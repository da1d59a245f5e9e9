/** Sends a notification to a channel of any kind: one attempt, bounded in time. */
import { type ChannelTarget, splitTarget } from '../../../core/alerts/channel.ts'
import type { SendResult } from '../../../core/alerts/delivery/decide-delivery.ts'
import { toRequests } from '../../../core/alerts/delivery/to-requests.ts'
import type { Notification } from '../../../core/alerts/notification.ts'
import type { Clock } from '../../../core/time/instant.ts'
import { createAddressChecker } from '../../webhook/push/address-rules.ts'
import { createSender } from '../../webhook/push/create-sender.ts'
import { createHostResolver } from '../../webhook/push/resolve-host.ts'
import type { AddressRules } from '../../webhook/push/sender.ts'
import { sendEmail } from './send-email.ts'
import { sendRequests } from './send-http.ts'

export type ChannelSender = Readonly<{
  /** Resolves with the result, whatever the service does. `only`: some of the recipients of an e-mail. */
  send(
    target: ChannelTarget,
    notification: Notification,
    options?: Readonly<{ only?: readonly string[] }>,
  ): Promise<SendResult>
  /** Ends all attempts, now and later. */
  abort(): void
  close(): Promise<void>
}>

export type ChannelSenderParts = Readonly<{
  addresses: AddressRules
  clock: Clock
  /** The limit for one request, or for one reply of an SMTP server. */
  timeoutMs: number
}>

/** Less than a lease lasts: a notification about 20 alerts can be 20 requests. */
const totalMsMax = 30_000
const responseMax = 1_000

export function createChannelSender({ addresses, clock, timeoutMs }: ChannelSenderParts): ChannelSender {
  const sender = createSender({ addresses, timeoutMs, connectionsPerOriginMax: 4, originsMax: 100 })
  const email = { checker: createAddressChecker(addresses), resolve: createHostResolver(), timeoutMs }
  const stopping = new AbortController()
  const timeouts = { timeoutMs, totalMs: totalMsMax }
  return {
    send: async (target, notification, { only } = {}) => {
      if (target.kind !== 'email') {
        const requests = toRequests(target, notification, clock.now())
        return withoutSecrets(await sendRequests(sender, requests, timeouts), target)
      }
      const ended = AbortSignal.any([stopping.signal, AbortSignal.timeout(totalMsMax)])
      return withoutSecrets(await sendEmail(email, target, notification, only, ended), target)
    },
    abort: () => {
      stopping.abort()
      sender.abort()
    },
    close: () => sender.close(),
  }
}

/** Services repeat parts of a request in their answers. */
function withoutSecrets(result: SendResult, target: ChannelTarget): SendResult {
  if (result.isDelivered) return result
  const secrets = Object.values(splitTarget(target).secrets).filter((secret) => secret.length >= 4)
  const hide = (text: string): string =>
    secrets.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), text)
  const { message, response } = result
  return { ...result, message: hide(message), response: response && hide(response).slice(0, responseMax) }
}
