/**
 * Bytes in JSON: `<name>` is the text if the bytes are UTF-8, and `<name>_base64` always has the bytes. No
 * information is lost, and readable text stays readable.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { Type } from 'typebox'
import type { Header } from '../../../core/item.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { storedAsBytes } from '../../http/validation/unstorable-text.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import { nullable } from './schemas.ts'

export const HeaderView = Type.Object({
  name: Type.String({ description: 'Name of the header.' }),
  value: nullable(Type.String(), 'The value as text; null if it is not UTF-8 or the header has no value.'),
  value_base64: nullable(Type.String(), 'The value as bytes; null if the header has no value.'),
})

export const HeaderSpec = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 1_000, description: 'Name of the header.' }),
    value: Type.Optional(
      Type.String({ ...storedAsBytes, maxLength: 100_000, description: 'The value as text.' }),
    ),
    value_base64: Type.Optional(
      Type.String({ maxLength: 140_000, description: 'The value as bytes, in base64.' }),
    ),
  },
  {
    additionalProperties: false,
    description: 'Give `value` or `value_base64`, or neither for a header without a value.',
  },
)

/** Returns null for bytes that are not UTF-8. */
export function decodeText(bytes: Uint8Array | null): string | null {
  return bytes === null || !isUtf8(bytes) ? null : toBuffer(bytes).toString()
}

export function encodeBase64(bytes: Uint8Array): string
export function encodeBase64(bytes: Uint8Array | null): string | null
export function encodeBase64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : toBuffer(bytes).toString('base64')
}

export function encodeHex(bytes: Uint8Array): string {
  return toBuffer(bytes).toString('hex')
}

export function viewHeader([name, value]: Header): {
  name: string
  value: string | null
  value_base64: string | null
} {
  return { name, value: decodeText(value), value_base64: encodeBase64(value) }
}

/** Reads headers of a request. `field` is the path of the list in error messages. */
export function readHeaders(
  field: string,
  headers: readonly Readonly<{ name: string; value?: string; value_base64?: string }>[],
): Header[] {
  return headers.map(({ name, value, value_base64 }, index) => {
    return [name, readBytes(`${field}[${index}].value`, value, value_base64) ?? null] as const
  })
}

/** Reads `<field>` or `<field>_base64`. Returns undefined if neither is given, and null for a null text. */
export function readBytes(
  field: string,
  text: string | null | undefined,
  base64: string | undefined,
): Uint8Array | null | undefined {
  if (text !== undefined && base64 !== undefined) {
    throw new InvalidRequest([{ field, message: `and ${field}_base64 are both given; give one of them` }])
  }
  if (base64 !== undefined) return decode(`${field}_base64`, base64)
  return typeof text === 'string' ? Buffer.from(text) : text
}

function decode(field: string, text: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw new InvalidRequest([{ field, message: 'is not base64' }])
  return bytes
}

/** Shares the memory, because payloads may be large. */
function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
