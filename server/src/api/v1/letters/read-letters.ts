/**
 * Letters with their bytes, without having too many of them at once: payloads may be 16 MiB each, so how many are
 * asked for next depends on how large the last ones were.
 */
import type { Item } from '../../../core/item.ts'
import type { LetterSearch, Letters } from '../../../letters/letters.ts'
import type { LetterCursor } from '../../../storage/letter-store.ts'

export type LetterBatch = Readonly<{
  letters: readonly Item[]
  looked: number
  next: LetterCursor | null
  total: number | null
}>

export const firstBatch = 25
const batchMax = 500
const batchBytes = 4 * 1_024 * 1_024

/**
 * Batches until there is nothing more, `countMax` were given, or `msMax` are over. A batch that ends early for lack
 * of time has fewer letters than asked for, and a `next`.
 */
export async function* readLetters(
  letters: Pick<Letters, 'list'>,
  search: Omit<LetterSearch, 'hasBytes' | 'msMax'> & Readonly<{ msMax?: number }>,
  nowMs: () => number = () => performance.now(),
): AsyncGenerator<LetterBatch> {
  const { countMax, msMax = Number.POSITIVE_INFINITY, ...rest } = search
  const deadlineMs = nowMs() + msMax
  let left = countMax
  let size = firstBatch
  let after = search.after
  for (;;) {
    const msLeft = Math.max(1, deadlineMs - nowMs())
    const page = await letters.list({
      ...rest,
      ...(after !== undefined && { after }),
      countMax: Math.min(size, left),
      hasBytes: true,
      ...(msLeft < Number.POSITIVE_INFINITY && { msMax: msLeft }),
    })
    yield page
    left -= page.letters.length
    if (page.next === null || left <= 0 || nowMs() >= deadlineMs) return
    after = page.next
    size = nextBatch(page.letters, size)
  }
}

/** How many to ask for after these. */
export function nextBatch(letters: readonly Item[], size: number): number {
  if (letters.length === 0) return size
  const bytes = letters.reduce((sum, item) => sum + item.payload.byteLength, 0)
  const fitting = Math.floor(batchBytes / Math.max(1, bytes / letters.length))
  // At most four times as many as before: the next ones may be larger.
  return Math.max(1, Math.min(fitting, size * 4, batchMax))
}
