/** Finds archived letters within a time limit. */
import type { ArchivePage, ListedArchived } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { ArchiveSearch } from './letters.ts'
import { lookMaxFirst, msMaxDefault, nextLookMax } from './search-budget.ts'

export async function searchArchive(
  storage: Pick<StoreReads, 'findArchivedLetters'>,
  query: ArchiveSearch,
  elapsedMs: () => number,
): Promise<ArchivePage> {
  const { filter, countMax, msMax = msMaxDefault } = query
  const deadline = elapsedMs() + msMax
  const letters: ListedArchived[] = []
  let looked = 0
  let { after } = query
  let lookMax = Math.max(lookMaxFirst, countMax)
  for (;;) {
    const startedMs = elapsedMs()
    const page = await storage.findArchivedLetters({
      filter,
      countMax: countMax - letters.length,
      lookMax,
      ...(after !== undefined && { after }),
    })
    letters.push(...page.letters)
    looked += page.looked
    const isOver = letters.length >= countMax || elapsedMs() >= deadline
    if (page.next === null || isOver) return { letters, looked, next: page.next }
    after = page.next
    lookMax = nextLookMax(lookMax, elapsedMs() - startedMs, deadline - elapsedMs())
  }
}
