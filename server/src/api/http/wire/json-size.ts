import { hasTooManyValues, jsonValuesMax } from '../../../core/text/json-values.ts'
import { KnownError } from '../../../errors.ts'

/**
 * The values of a body that is parsed on the server's thread: a list of `elementsMax` ids, and some more.
 * Each value takes about a microsecond of the server's time, and a field name that is new to it even longer.
 */
export const plainJsonValuesMax = 25_000

/** Refuses a JSON body with more than `valuesMax` values, before it is parsed. */
export function checkJsonSize(bytes: Uint8Array, valuesMax = jsonValuesMax): void {
  if (!hasTooManyValues(bytes, valuesMax)) return
  const advice =
    valuesMax === jsonValuesMax ? 'send fewer items per request, or payloads as text' : 'send fewer'
  throw new KnownError('BAD_REQUEST', `the body has more than ${valuesMax} JSON values; ${advice}`)
}
