/**
 * Bytes on the wire: under its own name as text where they are text, under `<name>_base64` always. So nothing is
 * lost, and what a person can read is readable.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { Type } from 'typebox'
import type { Header } from '../../../core/item.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { storedAsBytes } from '../../http/validation/unstorable-text.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import { nullable } from './cursor.ts'

export const HeaderView = Type.Object({
  name: Type.String(),
  value: nullable(Type.String(), 'As text; null when it is not UTF-8, or when there is no value at all.'),
  value_base64: nullable(Type.String(), 'The same bytes; null when there is no value.'),
})

export const HeaderSpec = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 1_000 }),
    value: Type.Optional(Type.String({ ...storedAsBytes, maxLength: 100_000 })),
    value_base64: Type.Optional(Type.String({ maxLength: 140_000 })),
  },
  {
    additionalProperties: false,
    description: '`value` is text, `value_base64` bytes; neither: a header without a value.',
  },
)

/** Null for what is not UTF-8. */
export function textOf(bytes: Uint8Array | null): string | null {
  return bytes === null || !isUtf8(bytes) ? null : bufferOf(bytes).toString()
}

export function base64Of(bytes: Uint8Array): string
export function base64Of(bytes: Uint8Array | null): string | null
export function base64Of(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : bufferOf(bytes).toString('base64')
}

export function hexOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString('hex')
}

export function viewHeader([name, value]: Header): {
  name: string
  value: string | null
  value_base64: string | null
} {
  return { name, value: textOf(value), value_base64: base64Of(value) }
}

/** Undefined when neither is given; null when there is to be none. */
export function bytesGiven(
  field: string,
  text: string | null | undefined,
  base64: string | undefined,
): Uint8Array | null | undefined {
  if (text !== undefined && base64 !== undefined) {
    throw new InvalidRequest([{ field, message: `is given twice: as text and as ${field}_base64` }])
  }
  if (base64 !== undefined) return decode(`${field}_base64`, base64)
  return typeof text === 'string' ? Buffer.from(text) : text
}

function decode(field: string, text: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw new InvalidRequest([{ field, message: 'is not base64' }])
  return bytes
}

/** Over the same memory: payloads may be large. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
