import { createValueCounter, jsonValuesMax } from '../../../core/json-values.ts'
import { KnownError } from '../../../errors.ts'

/** The server answers other requests after each part of this size. */
const partBytes = 4 * 2 ** 20

/** Each value has at least one byte, so a smaller body needs no check. */
export function needsSizeCheck(bytes: Buffer): boolean {
  return bytes.length >= jsonValuesMax
}

/** Refuses a JSON body with more than `jsonValuesMax` values, before it is parsed. */
export async function checkJsonSize(bytes: Buffer): Promise<void> {
  const counter = createValueCounter(jsonValuesMax)
  for (let from = 0; from < bytes.length && counter.values <= jsonValuesMax; from += partBytes) {
    if (from > 0) await new Promise(setImmediate)
    counter.read(bytes, from, Math.min(from + partBytes, bytes.length))
  }
  if (counter.values <= jsonValuesMax) return
  throw new KnownError(
    'BAD_REQUEST',
    `the body has more than ${jsonValuesMax} JSON values; send fewer items per request, or payloads as text`,
  )
}
