/** Producers, channels and consumers as the configuration file lists them. */
import type { Delivery } from '../items/queue.ts'

export type ConfiguredEntity = Readonly<{ id: string; name?: string; token?: string }>
export type ConfiguredConsumer = ConfiguredEntity &
  Readonly<{ channel: string; callbackUrl: string; type?: Delivery }>

export type ConfiguredWebhooks = Readonly<{
  producers: readonly ConfiguredEntity[]
  channels: readonly ConfiguredEntity[]
  consumers: readonly ConfiguredConsumer[]
}>
