/** Finds letters by id, or by filter within a time limit, and counts them. */

import { anyClass } from '../core/dead-letters/cause.ts'
import { listCampaignIds } from '../core/dead-letters/letter.ts'
import type { LetterId } from '../core/ids/ids.ts'
import type { AuditRow } from '../storage/contract/audit.ts'
import type { CountedBy, CountedFilter, LetterFilter, LetterScan } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { SearchLimits } from '../storage/search/pacer.ts'
import { searchAll, searchLetters } from '../storage/search/search-letters.ts'
import { areRedrivesCounted, boundCounted } from '../storage/shared/letters/counted-filter.ts'
import { findCause, listCauses } from './grouping/causes.ts'
import { createLabels } from './labels.ts'
import { isRootId, toLetterUuid } from './letter-id.ts'
import type {
  ArchivePage,
  ArchiveSearch,
  LetterBatch,
  LetterDetail,
  LetterSearch,
  LetterSearchPage,
  Letters,
} from './letters.ts'

type Search = Pick<
  Letters,
  | 'find'
  | 'resolveIds'
  | 'selectOpen'
  | 'list'
  | 'readAll'
  | 'count'
  | 'countOpenSince'
  | 'listGroups'
  | 'labels'
  | 'causes'
  | 'findCause'
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
      const [own] = await resolveIds([id])
      // An id that the letter had before, or that one of its redrives has. It is unique in practice.
      const letterId = own ?? (await storage.findLetterIds([id]))[0]?.letterId
      if (letterId === undefined) return null
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
      const page = await searchLetters(storage, query, readLimits(query, elapsedMs))
      return { ...toBatch(page), total: isCountExact ? total : null }
    },
    readAll: (query) => readAll(storage, query, readLimits(query, elapsedMs)),
    count: (query) => storage.countLetters(query),
    countOpenSince: (since) => storage.countOpenSince(since),
    listGroups: (query) => storage.listGroups(query),
    labels: createLabels(storage),
    causes: (query) => listCauses(storage, query),
    findCause: (causeKey, filter) => findCause(storage, causeKey, filter),
    areCountsExact: (filter, by) => areCountsExact(storage, filter, by),
    groupArrivals: (groupIds, since) => storage.groupArrivals(groupIds, since),
    listArchived: (query) => searchArchive(storage, query, readLimits(query, elapsedMs)),
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

function toBatch({ found, examinedCount, next }: LetterScan): LetterBatch {
  return { letters: found.map(({ item }) => item), examinedCount, next }
}

function readLimits({ msMax }: Pick<LetterSearch, 'msMax'>, elapsedMs: () => number): SearchLimits {
  return { elapsedMs, ...(msMax !== undefined && { msMax }) }
}

async function* readAll(
  storage: StoreReads,
  query: LetterSearch,
  limits: SearchLimits,
): AsyncGenerator<LetterBatch> {
  for await (const scan of searchAll(storage, query, limits)) yield toBatch(scan)
}

async function searchArchive(
  storage: StoreReads,
  query: ArchiveSearch,
  limits: SearchLimits,
): Promise<ArchivePage> {
  const order = { order: 'archivedAt', isDescending: true, bytes: 'head' } as const
  const { found, examinedCount, next } = await searchLetters(storage, { ...query, ...order }, limits)
  return { letters: found.map(({ item, at }) => ({ item, archivedAt: at })), examinedCount, next }
}

/** Counts matching letters from the counts: exact for a counted filter, otherwise an upper bound. */
async function countMatching(
  storage: Pick<StoreReads, 'countLetters'>,
  filter: LetterFilter,
): Promise<number> {
  const rows = await storage.countLetters({ filter: toCountedFilter(filter), by: [] })
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
  const lost = { ...toCountedFilter(filter), slugs: ['other'], errorClasses: [anyClass] }
  return (await countMatching(storage, lost)) === 0
}

const countedNames = [
  'queues',
  'namespaces',
  'states',
  'groupIds',
  'causes',
  'origins',
  'errorCodes',
  'slugs',
  'errorClasses',
] as const satisfies (keyof CountedFilter)[]

export function toCountedFilter(filter: LetterFilter): CountedFilter {
  const part: Record<string, unknown> = {}
  for (const name of countedNames) if (filter[name] !== undefined) part[name] = filter[name]
  if (filter.retryCount !== undefined) {
    part.retryCount = boundCounted(filter.retryCount)
  }
  return part as CountedFilter
}

/** True if the counts alone can answer how many letters match. */
export function isCounted(filter: LetterFilter): boolean {
  if (!areRedrivesCounted(filter.retryCount)) return false
  const names: readonly string[] = [...countedNames, 'retryCount']
  return Object.entries(filter).every(([name, value]) => value === undefined || names.includes(name))
}
