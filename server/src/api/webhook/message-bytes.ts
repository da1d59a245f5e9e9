/** The bytes of messages as texts. */
import { isUtf8 } from 'node:buffer'
import type { Header } from '../../core/items/item.ts'
import { LargeBytes, largeBytesMin } from '../http/wire/json-parts.ts'

/** Large payloads are encoded when they are sent: as JSON, a text of 16 MiB can have 96 MiB. */
export function viewMessagePayload(payload: Uint8Array): string | LargeBytes {
  const isLarge = payload.byteLength >= largeBytesMin && isUtf8(payload)
  return isLarge ? new LargeBytes(payload, 'text') : toText(payload)
}

export function viewMessageHeaders(headers: readonly Header[]): Record<string, string> {
  return Object.fromEntries(headers.map(([name, value]) => [name, toText(value)]))
}

function toText(bytes: Uint8Array | null): string {
  return new TextDecoder().decode(bytes ?? undefined)
}
