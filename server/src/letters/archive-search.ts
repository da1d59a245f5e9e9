/** Finds archived letters within a time limit. */
import type { ArchivePage, ListedArchived } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { ArchiveSearch } from './letters.ts'
import { chooseExaminedMax, examinedMaxFirst, msMaxDefault } from './search-budget.ts'

export async function searchArchive(
  storage: Pick<StoreReads, 'findArchivedLetters'>,
  query: ArchiveSearch,
  elapsedMs: () => number,
): Promise<ArchivePage> {
  const { filter, countMax, msMax = msMaxDefault } = query
  const deadline = elapsedMs() + msMax
  const letters: ListedArchived[] = []
  let examinedCount = 0
  let { after } = query
  let examinedMax = Math.max(examinedMaxFirst, countMax)
  for (;;) {
    const startedMs = elapsedMs()
    const page = await storage.findArchivedLetters({
      filter,
      countMax: countMax - letters.length,
      examinedMax,
      ...(after !== undefined && { after }),
    })
    letters.push(...page.letters)
    examinedCount += page.examinedCount
    const isOver = letters.length >= countMax || elapsedMs() >= deadline
    if (page.next === null || isOver) return { letters, examinedCount, next: page.next }
    after = page.next
    examinedMax = chooseExaminedMax(examinedMax, elapsedMs() - startedMs, deadline - elapsedMs())
  }
}
