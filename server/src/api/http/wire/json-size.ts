import { hasTooManyValues, jsonValuesMax } from '../../../core/json-values.ts'
import { KnownError } from '../../../errors.ts'

/** Refuses a JSON body with more than `jsonValuesMax` values, before it is parsed. */
export function checkJsonSize(bytes: Uint8Array): void {
  if (!hasTooManyValues(bytes)) return
  throw new KnownError(
    'BAD_REQUEST',
    `the body has more than ${jsonValuesMax} JSON values; send fewer items per request, or payloads as text`,
  )
}
