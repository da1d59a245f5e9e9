/** Bytes in the JSON of `/api/v1`. */
import { toBase64 } from './base64.ts'

/** Bytes to send, in one of three forms. `json` is sent as its JSON text. */
export type Content = Readonly<{ text: string }> | Readonly<{ json: unknown }> | Readonly<{ base64: string }>

/** Bytes to send: text, bytes, or an object that names the form. */
export type Payload = string | Uint8Array | Content

/** The key of a message: like a payload, but without `json`. */
export type MessageKey = string | Uint8Array | Exclude<Content, { json: unknown }>

/** A header with its value as text or base64, or without a value; or a pair of name and value. */
export type MessageHeader =
  | Readonly<{ name: string; text?: string; base64?: string }>
  | readonly [name: string, value: string | Uint8Array | null]

export function toContent(payload: MessageKey): Exclude<Content, { json: unknown }>
export function toContent(payload: Payload): Content
export function toContent(payload: Payload): Content {
  if (typeof payload === 'string') return { text: payload }
  return payload instanceof Uint8Array ? { base64: toBase64(payload) } : payload
}

export function toWireHeader(header: MessageHeader): object {
  if (!isPair(header)) return header
  const [name, value] = header
  return value === null ? { name } : { name, ...toContent(value) }
}

/** Returns text if the payload is text or JSON, and base64 otherwise. */
export function toTextOrBase64(payload: Payload): Exclude<Content, { json: unknown }> {
  const content = toContent(payload)
  return 'json' in content ? { text: JSON.stringify(content.json) } : content
}

function isPair(header: MessageHeader): header is Extract<MessageHeader, readonly unknown[]> {
  return Array.isArray(header)
}
