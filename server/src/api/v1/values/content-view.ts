/**
 * Bytes in answers: an object with `text` if the bytes are UTF-8, and with `base64` otherwise. Both are
 * exact, so no information is lost, and readable text stays readable.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { type Static, Type } from 'typebox'
import type { Header } from '../../../core/items/item.ts'
import { headBytes } from '../../../storage/contract/letters.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { LargeBytes, largeBytesMin } from '../../http/wire/json-parts.ts'
import { parsePayload } from './json-payload.ts'
import { nullable } from './schemas.ts'

export const payloadForms = ['text', 'json', 'base64', 'none'] as const
export type PayloadForm = (typeof payloadForms)[number]

const text = Type.Optional(Type.String({ description: 'The bytes as text, if they are UTF-8.' }))
const base64 = Type.Optional(
  describedWith(
    { contentEncoding: 'base64' },
    Type.String({ description: 'The bytes in base64, if they are not UTF-8.' }),
  ),
)

/** A payload has exactly one of text, json and base64, or none of them if the request asked for none. */
export const PayloadView = component(
  'Payload',
  Type.Object(
    {
      bytes: Type.Integer({ description: 'Length of the complete payload in bytes.' }),
      is_truncated: Type.Boolean({ description: 'Whether less than the complete payload is shown.' }),
      text,
      json: Type.Optional(
        Type.Unknown({
          description:
            'The payload as JSON, if the request asked for it. It rounds numbers above 2^53 and keeps only the last of ' +
            'repeated names; text and base64 are exact.',
        }),
      ),
      base64,
    },
    { description: 'The payload, with one of text, json and base64.' },
  ),
)
export type PayloadView = Static<typeof PayloadView>

const keyFields = component('MessageKey', Type.Object({ text, base64 }))
export const KeyView = nullable(keyFields, 'The message key, with one of text and base64; null: no key.')
export type KeyView = Static<typeof KeyView>

export const HeaderView = component(
  'MessageHeader',
  Type.Object(
    { name: Type.String({ description: 'Name of the header.' }), text, base64 },
    { description: 'A header, with one of text and base64, or neither if it has no value.' },
  ),
)
export type HeaderView = Static<typeof HeaderView>

/** Never fails: bytes that do not have the requested form are shown as text, or else as base64. */
export function viewPayload(payload: Uint8Array, form: PayloadForm): PayloadView {
  const bytes = payload.byteLength
  if (form === 'none') return { bytes, is_truncated: bytes > 0 }
  const whole = { bytes, is_truncated: false }
  if (form === 'base64') return { ...whole, base64: encodeBase64(payload) }
  const json = form === 'json' ? parsePayload(payload) : undefined
  return json === undefined ? { ...whole, ...viewBytes(payload) } : { ...whole, json }
}

/** A payload that is encoded when it is sent. JSON is sent as it was stored. */
export type LargePayloadView = Readonly<
  Pick<PayloadView, 'bytes' | 'is_truncated'> & Partial<Record<'text' | 'json' | 'base64', LargeBytes>>
>

/**
 * `viewPayload` for a payload that can be large. `isJson` tells whether a large payload is shown as JSON.
 * `bytesMin`: payloads from this size on are large; smaller for a list, because its payloads add up.
 */
export async function viewLargePayload(
  payload: Uint8Array,
  form: PayloadForm,
  isJson: (payload: Uint8Array) => Promise<boolean>,
  bytesMin = largeBytesMin,
): Promise<PayloadView | LargePayloadView> {
  if (payload.byteLength < bytesMin || form === 'none') return viewPayload(payload, form)
  const whole = { bytes: payload.byteLength, is_truncated: false }
  if (form === 'base64' || !isUtf8(payload)) return { ...whole, base64: new LargeBytes(payload, 'base64') }
  if (form === 'json' && (await isJson(payload))) return { ...whole, json: new LargeBytes(payload, 'json') }
  return { ...whole, text: new LargeBytes(payload, 'text') }
}

/** `payload` may be only the start of a payload with `bytes` bytes. */
export function previewPayload(payload: Uint8Array, bytes = payload.byteLength): PayloadView {
  const start = trimToCharacters(payload.subarray(0, headBytes), bytes > headBytes)
  const shown = isUtf8(start) ? start : payload.subarray(0, otherHeadBytes)
  return { bytes, is_truncated: shown.byteLength < bytes, ...viewBytes(shown) }
}

/** Other bytes than text tell a reader little, and need more characters: show fewer of them. */
const otherHeadBytes = headBytes / 4

export function viewKey(key: Uint8Array | null): KeyView {
  return key === null ? null : viewBytes(key)
}

export function viewHeader([name, value]: Header): HeaderView {
  return value === null ? { name } : { name, ...viewBytes(value) }
}

export function viewBytes(bytes: Uint8Array): Readonly<{ text: string }> | Readonly<{ base64: string }> {
  const decoded = decodeText(bytes)
  return decoded === undefined ? { base64: encodeBase64(bytes) } : { text: decoded }
}

function decodeText(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) ? toBuffer(bytes).toString() : undefined
}

function encodeBase64(bytes: Uint8Array): string {
  return toBuffer(bytes).toString('base64')
}

/** Shares the memory, because payloads may be large. */
function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Removes the bytes of a character that the cut separated. */
function trimToCharacters(bytes: Uint8Array, isCut: boolean): Uint8Array {
  if (!isCut) return bytes
  let end = bytes.byteLength
  while (end > 0 && bytes.byteLength - end < 3 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end--
  const first = bytes[end - 1] ?? 0
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1
  return bytes.byteLength - end + 1 >= length ? bytes : bytes.subarray(0, end - 1)
}
