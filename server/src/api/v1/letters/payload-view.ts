import { isUtf8 } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { headBytes } from '../../../storage/contract/letters.ts'
import { isNestedTooDeep } from '../values/nesting.ts'
import { nullable } from '../values/schemas.ts'
import { decodeText, encodeBase64, encodeHex } from '../values/wire-bytes.ts'

export const payloadForms = ['auto', 'text', 'json', 'hex', 'base64', 'none'] as const
export type PayloadForm = (typeof payloadForms)[number]

export const PayloadView = Type.Object({
  bytes: Type.Integer({ description: 'Length of the payload in bytes.' }),
  form: Type.Enum(['text', 'json', 'hex', 'base64', 'none'], { description: 'The form of value.' }),
  value: Type.Unknown({
    description:
      'The payload in this form. JSON rounds numbers above 2^53 and keeps only the last of repeated names; text, hex ' +
      'and base64 are exact.',
  }),
  problem: nullable(Type.String(), 'Why the requested form is not possible; the form is then hex.'),
})

export const PayloadPreview = Type.Object({
  bytes: Type.Integer({ description: 'Length of the complete payload in bytes.' }),
  preview: Type.String({ description: 'The start of the payload as text, or as hex if it is not text.' }),
  is_text: Type.Boolean({ description: 'Whether preview is text.' }),
  is_cut: Type.Boolean({ description: 'Whether the payload is longer than preview.' }),
})

const previewBytes = headBytes

/** Never fails: bytes that do not have the requested form are shown as hex. */
export function viewPayload(payload: Uint8Array, form: PayloadForm): Static<typeof PayloadView> {
  const bytes = payload.byteLength
  const shown = (as: Exclude<PayloadForm, 'auto'>, value: unknown) => ({
    bytes,
    form: as,
    value,
    problem: null,
  })
  const asHex = (problem: string) => ({ bytes, form: 'hex' as const, value: encodeHex(payload), problem })
  switch (form) {
    case 'none':
      return shown('none', null)
    case 'hex':
      return shown('hex', encodeHex(payload))
    case 'base64':
      return shown('base64', encodeBase64(payload))
    case 'text': {
      const text = decodeText(payload)
      return text === null ? asHex('the payload is not UTF-8') : shown('text', text)
    }
    case 'json': {
      const json = parsePayload(payload)
      return json === undefined ? asHex('the payload is not JSON, or nested too deep') : shown('json', json)
    }
    case 'auto': {
      const json = parsePayload(payload)
      if (json !== undefined) return shown('json', json)
      const text = decodeText(payload)
      return text === null ? shown('hex', encodeHex(payload)) : shown('text', text)
    }
  }
}

function parsePayload(payload: Uint8Array): unknown {
  const text = decodeText(payload)
  if (text === null) return undefined
  try {
    const json: unknown = JSON.parse(text)
    return isNestedTooDeep(json) ? undefined : json
  } catch {
    // The payload is not JSON.
    return undefined
  }
}

/** `payload` may be only the start of a payload with `bytes` bytes. */
export function previewPayload(
  payload: Uint8Array,
  bytes = payload.byteLength,
): Static<typeof PayloadPreview> {
  const start = trimToCharacters(payload.subarray(0, previewBytes), bytes > previewBytes)
  if (isUtf8(start)) {
    return { bytes, preview: decodeText(start) ?? '', is_text: true, is_cut: start.byteLength < bytes }
  }
  const hex = payload.subarray(0, previewBytes / 4)
  return { bytes, preview: encodeHex(hex), is_text: false, is_cut: hex.byteLength < bytes }
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
