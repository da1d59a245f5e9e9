import { Buffer, isUtf8 } from 'node:buffer'
import { hasTooManyValues } from '../../../core/text/json-values.ts'
import { isNestedTooDeep } from '../../../core/text/nesting.ts'

/** Whether a payload is JSON that is shown as JSON: not with too many values, and not nested too deep. */
export function isShownAsJson(payload: Uint8Array): boolean {
  return parsePayload(payload) !== undefined
}

/** Returns undefined if the payload is not JSON, has too many values, or is nested too deep to be written. */
export function parsePayload(payload: Uint8Array): unknown {
  if (hasTooManyValues(payload) || !isUtf8(payload)) return undefined
  try {
    const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString()
    const json: unknown = JSON.parse(text)
    return isNestedTooDeep(json) ? undefined : json
  } catch {
    // The payload is not JSON.
    return undefined
  }
}
