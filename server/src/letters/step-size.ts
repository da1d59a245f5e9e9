/**
 * How many letters go into one transaction. Many small ones are bounded by their number; a payload may have 16 MiB, and
 * what copies a thousand of those would keep everybody else waiting for minutes.
 */
import type { Storage } from '../storage/storage.ts'

const stepBytesMax = 16 * 2 ** 20

/** So many of the first ones go together: at least one, and no more after the one that reaches the bound. */
export async function countTogether(
  storage: Pick<Storage, 'weighLetters'>,
  letterIds: readonly string[],
): Promise<number> {
  const weighed = await storage.weighLetters(letterIds)
  const weights = new Map(weighed.map(({ letterId, payloadBytes }) => [letterId, payloadBytes]))
  let bytes = 0
  for (const [index, id] of letterIds.entries()) {
    bytes += weights.get(id) ?? 0
    if (bytes >= stepBytesMax) return index + 1
  }
  return letterIds.length
}
