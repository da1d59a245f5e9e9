/** The headers of a push, exactly as the contract lists them, and the Standard Webhooks signature. */
import type { SignatureHeaders } from './signature.ts'

export type PushHeaderValues = Readonly<{
  /** As Node received it: one character for each byte. */
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
  /** The stored headers of the message: name and value, as Node received them. */
  metadata: readonly (readonly [name: string, value: string])[]
  /** Undefined: the push is not signed. */
  signature: SignatureHeaders | undefined
}>

export const tokenHeaderDefault = 'X-Broker-Consumer-Token'
export const userAgentDefault = 'Webhook Message Broker'

/**
 * Metadata must not replace headers that belong to the connection or to the framing of the request, besides
 * the headers of the push itself.
 */
const connectionHeaders = [
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

const signatureHeaders = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

const namePattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are what the header must not have
const forbiddenInValue = /[\x00-\x08\x0a-\x1f\x7f]/g
const plainValue = /^[\t\x20-\x7e]*$/

export function isHeaderName(text: string): boolean {
  return namePattern.test(text)
}

/** Names and values in turn. No stored value can make the request malformed. */
export function createPushHeaders(values: PushHeaderValues): string[] {
  const headers = [
    'Content-Type',
    toReceivedValue(values.contentType),
    'X-Broker-Message-ID',
    toHeaderValue(values.messageId),
    'X-Broker-Message-Priority',
    String(values.priority),
    'X-Broker-Channel-ID',
    toHeaderValue(values.channelId),
    'X-Broker-Consumer-ID',
    toHeaderValue(values.consumerId),
    values.tokenHeaderName,
    toHeaderValue(values.consumerToken),
    'User-Agent',
    toHeaderValue(values.userAgent),
    'X-Request-ID',
    values.requestId,
  ]
  addMetadata(headers, values.metadata)
  if (values.signature !== undefined) headers.push(...Object.entries(values.signature).flat())
  return headers
}

function addMetadata(headers: string[], metadata: PushHeaderValues['metadata']): void {
  const names: string[] = []
  if (metadata.length > 0) {
    const taken = new Set([...connectionHeaders, ...signatureHeaders, 'x-broker-metadata-headers'])
    for (let at = 0; at < headers.length; at += 2) taken.add((headers[at] as string).toLowerCase())
    for (const [name, value] of metadata) {
      const key = name.toLowerCase()
      if (taken.has(key) || !isHeaderName(name)) continue
      taken.add(key)
      names.push(name)
      headers.push(name, toReceivedValue(value))
    }
  }
  headers.push('X-Broker-Metadata-Headers', names.toSorted().join(','))
}

/** A value that arrived in a header has one character for each byte already. */
function toReceivedValue(value: string): string {
  if (plainValue.test(value)) return value.trim()
  return isByteText(value) ? escapeControls(value).trim() : toHeaderValue(value)
}

function isByteText(value: string): boolean {
  for (let at = 0; at < value.length; at++) if (value.charCodeAt(at) > 0xff) return false
  return true
}

/**
 * Text that clients chose (ids, tokens) as UTF-8, one character for each byte. Control characters, which
 * could end the header, are percent-encoded.
 */
function toHeaderValue(text: string): string {
  if (plainValue.test(text)) return text.trim()
  let value = ''
  for (const byte of new TextEncoder().encode(text)) value += String.fromCharCode(byte)
  return escapeControls(value).trim()
}

function escapeControls(value: string): string {
  return value.replace(
    forbiddenInValue,
    (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`,
  )
}
