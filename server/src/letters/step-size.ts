/** How many letters go into one transaction: many small ones are bounded by their number, large ones by their bytes. */
import type { LetterPlace } from '../storage/contract/letters.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { stepBytesMax } from '../storage/shared/byte-budget.ts'

/** So many of the first ones go together: at least one, and no more after the one that reaches the bound. */
export async function countTogether(
  storage: Pick<Storage, 'weighLetters'>,
  letterIds: readonly string[],
  place: LetterPlace = 'live',
): Promise<number> {
  const weighed = await storage.weighLetters(letterIds, place)
  const weights = new Map(weighed.map(({ letterId, payloadBytes }) => [letterId, payloadBytes]))
  let bytes = 0
  for (const [index, id] of letterIds.entries()) {
    bytes += weights.get(id) ?? 0
    if (bytes >= stepBytesMax) return index + 1
  }
  return letterIds.length
}
