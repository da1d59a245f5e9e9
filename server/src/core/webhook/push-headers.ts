/** The headers of a push. */
import type { SignatureHeaders } from './signature.ts'

export type PushHeaderValues = Readonly<{
  contentType: string
  messageId: string
  priority: number
  channelId: string
  consumerId: string
  consumerToken: string
  /** The setting `token-header-name`. */
  tokenHeaderName: string
  userAgent: string
  /** A new xid for each attempt. */
  requestId: string
  /** The stored headers of the message: name and value. */
  metadata: readonly (readonly [name: string, value: string])[]
  /** Undefined: the push is not signed. */
  signature: SignatureHeaders | undefined
}>
