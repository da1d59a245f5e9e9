/**
 * Limits a transaction by bytes: many small letters are limited by their number, large ones by their size.
 */
import type { LetterId } from '../core/ids/ids.ts'
import type { LetterLocation } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { stepBytesMax } from '../storage/shared/byte-budget.ts'

/**
 * Returns how many letters, from the first, fit into a transaction: at least one, and up to `stepBytesMax`.
 */
export async function countFitting(
  storage: Pick<StoreReads, 'readPayloadSizes'>,
  letterIds: readonly LetterId[],
  place: LetterLocation = 'live',
): Promise<number> {
  const weighed = await storage.readPayloadSizes(letterIds, place)
  const weights = new Map(weighed.map(({ letterId, payloadBytes }) => [letterId, payloadBytes]))
  let bytes = 0
  for (const [index, id] of letterIds.entries()) {
    bytes += weights.get(id) ?? 0
    if (bytes >= stepBytesMax) return index + 1
  }
  return letterIds.length
}
