/** Producers, channels and consumers as the configuration file lists them. */
import type { Delivery } from '../items/queue.ts'

/** `Token`: of the settings, a secret that can be a reference. Without a token, a new object gets one. */
export type ConfiguredEntity<Token = string> = Readonly<{ id: string; name?: string; token?: Token }>
export type ConfiguredConsumer<Token = string> = ConfiguredEntity<Token> &
  Readonly<{ channel: string; callbackUrl: string; type?: Delivery }>

export type ConfiguredWebhooks<Token = string> = Readonly<{
  producers: readonly ConfiguredEntity<Token>[]
  channels: readonly ConfiguredEntity<Token>[]
  consumers: readonly ConfiguredConsumer<Token>[]
}>
