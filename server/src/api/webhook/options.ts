/** Settings of the webhook API. */
import type { ConfiguredWebhooks } from '../../core/webhook/configured.ts'

export type WebhookOptions = Readonly<{
  /** A scheduled message must be at least this far in the future. */
  scheduleDelayUsMin: number
  /** Producers, channels and consumers of the configuration file. */
  configured: ConfiguredWebhooks
}>

export type WebhookGateway = Readonly<{
  secret: Uint8Array
  toleranceSeconds: number
  /** Paths that start with one of these need no signature. */
  exemptPaths: readonly string[]
}>

export const defaultWebhookOptions: WebhookOptions = {
  scheduleDelayUsMin: 2 * 60 * 1_000_000,
  configured: { producers: [], channels: [], consumers: [] },
}
