/** Finds letters by id, or by filter within a time limit, and counts them. */

import { anyClass } from '../core/cause.ts'
import type { LetterId } from '../core/ids.ts'
import { listCampaignIds } from '../core/letter.ts'
import type { AuditRow } from '../storage/contract/audit.ts'
import {
  type CountedBy,
  type CountedFilter,
  type LetterBytes,
  type LetterFilter,
  measureLetter,
  pageBytesMax,
} from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { areRedrivesCounted, boundCounted } from '../storage/shared/counted-filter.ts'
import { searchArchive } from './archive-search.ts'
import { isRootId, toLetterUuid } from './letter-id.ts'
import type { LetterDetail, LetterSearch, LetterSearchPage, Letters } from './letters.ts'
import { chooseExaminedMax, examinedMaxFirst, msMaxDefault } from './search-budget.ts'
import { createSlugs } from './slugs.ts'

type Search = Pick<
  Letters,
  | 'find'
  | 'resolveIds'
  | 'selectOpen'
  | 'list'
  | 'count'
  | 'countOpenSince'
  | 'groups'
  | 'slugs'
  | 'areCountsExact'
  | 'groupArrivals'
  | 'listArchived'
>

const auditRowsMax = 100
const idsPerRead = 500

/** `elapsedMs`: a monotonic timer for the search limit, independent of the clock of the letters. */
export function createSearch(storage: StoreReads, elapsedMs: () => number = () => performance.now()): Search {
  const resolveIds: Search['resolveIds'] = async (ids) => {
    // Look up root ids by their UUID, too: this checks that the letter exists without reading its bytes.
    const uuids = new Set(ids.flatMap((id) => toLetterUuid(id) ?? []))
    if (uuids.size === 0) return ids.map(() => null)
    const found = new Map<string, string>()
    for (const { uuid, letterId } of await storage.findLettersByUuid([...uuids])) found.set(uuid, letterId)
    return ids.map((id) => {
      const letterId = found.get(toLetterUuid(id) ?? '') ?? null
      return isRootId(id) && letterId !== id ? null : letterId
    })
  }

  const auditTrail = async (
    letterId: LetterId,
    campaignIds: readonly string[],
  ): Promise<readonly AuditRow[]> => {
    const rows = await Promise.all(
      [letterId, ...campaignIds].map((target) => storage.listAudit({ target, countMax: auditRowsMax })),
    )
    return rows
      .flat()
      .sort((a, b) => b.id - a.id)
      .slice(0, auditRowsMax)
  }

  return {
    resolveIds,
    find: async (id): Promise<LetterDetail | null> => {
      const [letterId] = await resolveIds([id])
      if (letterId == null) return null
      const found = await findAnywhere(storage, letterId)
      if (found === null) return null
      const { item } = found
      const [edits, audit] = await Promise.all([
        storage.listEdits(letterId),
        auditTrail(letterId, item.letter === null ? [] : listCampaignIds(item.letter)),
      ])
      return { ...found, edits, audit }
    },

    selectOpen: async (letterIds): Promise<readonly LetterId[]> => {
      const open: LetterId[] = []
      for (let start = 0; start < letterIds.length; start += idsPerRead) {
        const letters = await storage.getLetters(letterIds.slice(start, start + idsPerRead), 'head')
        for (const { state, rootId } of letters)
          if (state === 'waiting' || state === 'dead') open.push(rootId)
      }
      return open
    },

    list: async (query): Promise<LetterSearchPage> => {
      const { filter } = query
      const total = await countMatching(storage, filter)
      const isCountExact = isCounted(filter) && (await areCountsExact(storage, filter))
      if (total === 0 && (isCountExact || (await areCountsExact(storage, filter))))
        return { letters: [], examinedCount: 0, next: null, total: isCountExact ? 0 : null }
      const page = await search(storage, query, elapsedMs)
      return { ...page, total: isCountExact ? total : null }
    },
    count: (query) => storage.countLetters(query),
    countOpenSince: (since) => storage.countOpenSince(since),
    groups: (query) => storage.listGroups(query),
    slugs: createSlugs(storage),
    areCountsExact: (filter, by) => areCountsExact(storage, filter, by),
    groupArrivals: (groupIds, since) => storage.groupArrivals(groupIds, since),
    listArchived: (query) => searchArchive(storage, query, elapsedMs),
  }
}

/** Reads a live or archived letter. A letter that is restored between the two reads is found by the third. */
async function findAnywhere(
  storage: Pick<StoreReads, 'getLetters' | 'getArchivedLetters'>,
  letterId: LetterId,
): Promise<Pick<LetterDetail, 'item' | 'archivedAt'> | null> {
  const [live] = await storage.getLetters([letterId])
  if (live !== undefined) return { item: live, archivedAt: null }
  const [archived] = await storage.getArchivedLetters([letterId])
  if (archived !== undefined) return archived
  const [restored] = await storage.getLetters([letterId])
  return restored === undefined ? null : { item: restored, archivedAt: null }
}

async function search(
  storage: Pick<StoreReads, 'listLetters'>,
  query: LetterSearch,
  elapsedMs: () => number,
): Promise<Omit<LetterSearchPage, 'total'>> {
  const { filter, order, isDescending, countMax, bytes, msMax = msMaxDefault } = query
  const deadline = elapsedMs() + msMax
  const letters: LetterSearchPage['letters'][number][] = []
  let examinedCount = 0
  let { after } = query
  let examinedMax = Math.max(examinedMaxFirst, countMax)
  for (;;) {
    const startedMs = elapsedMs()
    const page = await storage.listLetters({
      filter,
      order,
      isDescending,
      countMax: countMax - letters.length,
      examinedMax,
      bytes,
      ...(after !== undefined && { after }),
    })
    letters.push(...page.letters)
    examinedCount += page.examinedCount
    const isFull = letters.length >= countMax || isPageFull(letters, bytes)
    if (page.next === null || isFull || elapsedMs() >= deadline)
      return { letters, examinedCount, next: page.next }
    after = page.next
    examinedMax = chooseExaminedMax(examinedMax, elapsedMs() - startedMs, deadline - elapsedMs())
  }
}

/** True if the letters reach the byte limit of a page. */
function isPageFull(letters: LetterSearchPage['letters'], bytes: LetterBytes): boolean {
  return bytes === 'all' && letters.reduce((sum, letter) => sum + measureLetter(letter), 0) >= pageBytesMax
}

/** Counts matching letters from the counts: exact for a counted filter, otherwise an upper bound. */
async function countMatching(
  storage: Pick<StoreReads, 'countLetters'>,
  filter: LetterFilter,
): Promise<number> {
  const rows = await storage.countLetters({ filter: countedPart(filter), by: [] })
  return rows.reduce((sum, { count }) => sum + count, 0)
}

/**
 * False if some letters are counted without their error class (above 10,000 groups) and the filter or the
 * grouping asks for the class: such letters could belong to any class.
 */
export async function areCountsExact(
  storage: Pick<StoreReads, 'countLetters'>,
  filter: LetterFilter,
  by: readonly CountedBy[] = [],
): Promise<boolean> {
  const { errorClasses, slugs } = filter
  const isOfClasses = errorClasses !== undefined || by.includes('errorClass')
  if (!isOfClasses || slugs?.includes('other') === false) return true
  const lost = { ...countedPart(filter), slugs: ['other'], errorClasses: [anyClass] }
  return (await countMatching(storage, lost)) === 0
}

const countedNames = [
  'queues',
  'states',
  'groupIds',
  'origins',
  'reasons',
  'slugs',
  'errorClasses',
] as const satisfies (keyof CountedFilter)[]

export function countedPart(filter: LetterFilter): CountedFilter {
  const part: Record<string, unknown> = {}
  for (const name of countedNames) if (filter[name] !== undefined) part[name] = filter[name]
  if (filter.redrives !== undefined) {
    part.redrives = boundCounted(filter.redrives)
  }
  return part as CountedFilter
}

/** True if the counts alone can answer how many letters match. */
export function isCounted(filter: LetterFilter): boolean {
  if (!areRedrivesCounted(filter.redrives)) return false
  const names: readonly string[] = [...countedNames, 'redrives']
  return Object.entries(filter).every(([name, value]) => value === undefined || names.includes(name))
}
