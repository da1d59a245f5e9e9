import { isUtf8 } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { headBytes } from '../../../storage/contract/letters.ts'
import { nullable } from '../values/cursor.ts'
import { isNestedTooDeep } from '../values/nesting.ts'
import { base64Of, hexOf, textOf } from '../values/wire-bytes.ts'

export const payloadForms = ['auto', 'text', 'json', 'hex', 'base64', 'none'] as const
export type PayloadForm = (typeof payloadForms)[number]

export const PayloadView = Type.Object({
  bytes: Type.Integer({ description: 'How long it is.' }),
  form: Type.Enum(['text', 'json', 'hex', 'base64', 'none']),
  value: Type.Unknown({
    description:
      'In that form. As JSON, numbers beyond 2^53 are rounded and of repeated names the last one stands: text and hex are exact.',
  }),
  problem: nullable(Type.String(), 'Why it cannot be shown in the form that was asked for; then it is hex.'),
})

export const PayloadPreview = Type.Object({
  bytes: Type.Integer({ description: 'How long the whole payload is.' }),
  preview: Type.String({ description: 'Its beginning: text, or hex when it is none.' }),
  is_text: Type.Boolean(),
  is_cut: Type.Boolean(),
})

const previewBytes = headBytes

/** Always an answer: bytes that are not what was hoped for are shown as what they are. */
export function viewPayload(payload: Uint8Array, form: PayloadForm): Static<typeof PayloadView> {
  const bytes = payload.byteLength
  const shown = (as: Exclude<PayloadForm, 'auto'>, value: unknown) => ({
    bytes,
    form: as,
    value,
    problem: null,
  })
  const asHex = (problem: string) => ({ bytes, form: 'hex' as const, value: hexOf(payload), problem })
  switch (form) {
    case 'none':
      return shown('none', null)
    case 'hex':
      return shown('hex', hexOf(payload))
    case 'base64':
      return shown('base64', base64Of(payload))
    case 'text': {
      const text = textOf(payload)
      return text === null ? asHex('the payload is not UTF-8') : shown('text', text)
    }
    case 'json': {
      const json = jsonOf(payload)
      return json === undefined ? asHex('the payload is not JSON, or nested too deep') : shown('json', json)
    }
    case 'auto': {
      const json = jsonOf(payload)
      if (json !== undefined) return shown('json', json)
      const text = textOf(payload)
      return text === null ? shown('hex', hexOf(payload)) : shown('text', text)
    }
  }
}

function jsonOf(payload: Uint8Array): unknown {
  const text = textOf(payload)
  if (text === null) return undefined
  try {
    const json: unknown = JSON.parse(text)
    return isNestedTooDeep(json) ? undefined : json
  } catch {
    // It is not JSON: that is what was asked.
    return undefined
  }
}

/** Of a payload, or of its beginning and how long it is. */
export function previewPayload(
  payload: Uint8Array,
  bytes = payload.byteLength,
): Static<typeof PayloadPreview> {
  const start = wholeCharacters(payload.subarray(0, previewBytes), bytes > previewBytes)
  if (isUtf8(start)) {
    return { bytes, preview: textOf(start) ?? '', is_text: true, is_cut: start.byteLength < bytes }
  }
  const hex = payload.subarray(0, previewBytes / 4)
  return { bytes, preview: hexOf(hex), is_text: false, is_cut: hex.byteLength < bytes }
}

/** Without the bytes of a character that the cut went through. */
function wholeCharacters(bytes: Uint8Array, isCut: boolean): Uint8Array {
  if (!isCut) return bytes
  let end = bytes.byteLength
  while (end > 0 && bytes.byteLength - end < 3 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end--
  const first = bytes[end - 1] ?? 0
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1
  return bytes.byteLength - end + 1 >= length ? bytes : bytes.subarray(0, end - 1)
}
