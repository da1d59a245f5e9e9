/** Lists letters with the search, without a limit of time. Free of the test runner. */
import type {
  LetterCursor,
  LetterOrder,
  ListedArchived,
  ListedLetter,
} from '../../../src/storage/contract/letters.ts'
import type { StoreReads } from '../../../src/storage/contract/storage.ts'
import { type LetterQuery, searchLetters } from '../../../src/storage/search/search-letters.ts'

export type LettersQuery = Omit<LetterQuery, 'order'> & Readonly<{ order: LetterOrder; examinedMax: number }>
export type LettersPage = Readonly<{
  letters: readonly ListedLetter[]
  examinedCount: number
  next: LetterCursor | null
}>

export async function listLetters(
  storage: Pick<StoreReads, 'findRanges'>,
  { examinedMax, ...query }: LettersQuery,
): Promise<LettersPage> {
  const limits = { examinedMax, msMax: Number.POSITIVE_INFINITY }
  const { found, ...page } = await searchLetters(storage, query, limits)
  return { letters: found.map(({ item }) => item), ...page }
}

export type ArchiveQuery = Pick<LettersQuery, 'filter' | 'after' | 'countMax' | 'examinedMax'>
export type ArchivePage = Omit<LettersPage, 'letters'> & Readonly<{ letters: readonly ListedArchived[] }>

export async function findArchivedLetters(
  storage: Pick<StoreReads, 'findRanges'>,
  { examinedMax, ...query }: ArchiveQuery,
): Promise<ArchivePage> {
  const order = { order: 'archivedAt', isDescending: true, bytes: 'head' } as const
  const limits = { examinedMax, msMax: Number.POSITIVE_INFINITY }
  const { found, ...page } = await searchLetters(storage, { ...query, ...order }, limits)
  return { letters: found.map(({ item, at }) => ({ item, archivedAt: at })), ...page }
}

/** The letters that were archived last, newest first. */
export async function listArchivedLetters(
  storage: Pick<StoreReads, 'findRanges'>,
  { queues, ...query }: Readonly<{ queues?: readonly string[]; after?: LetterCursor; countMax: number }>,
): Promise<readonly ListedArchived[]> {
  const filter = queues === undefined ? {} : { queues }
  const page = await findArchivedLetters(storage, { filter, examinedMax: Number.POSITIVE_INFINITY, ...query })
  return page.letters
}
