/** Causes over all dead queues: the groups with one key, with the sums of their counts. */

import type { LetterId } from '../../core/ids/ids.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { CauseCount, CausesQuery } from '../../storage/contract/groups.ts'
import type { CountedFilter, GroupFacts } from '../../storage/contract/letters.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

export type CauseFacts = Readonly<{
  causeKey: string
  title: string
  isTitlePinned: boolean
  slug: string
  errorCode: string
  errorClass: string
  firstSeenAt: Instant
  lastSeenAt: Instant
  /** The letter of the cause that died last. */
  sampleId: LetterId | null
  /** The number of matching letters, and their numbers by state. */
  count: number
  states: GroupFacts['states']
  /** Groups with the most matching letters first. */
  groups: readonly GroupFacts[]
}>

/** `next`: continue after this cause; null on the last page. */
export type CausesPage = Readonly<{ causes: readonly CauseFacts[]; next: CauseCount | null }>

type CauseReads = Pick<StoreReads, 'listCauses' | 'findCauseKey' | 'listGroups'>

const groupsPerRead = 500

export async function listCauses(storage: CauseReads, query: CausesQuery): Promise<CausesPage> {
  const page = await storage.listCauses(query)
  if (page.length === 0) return { causes: [], next: null }
  const keys = page.map(({ causeKey }) => causeKey)
  const groups = await readGroups(storage, { ...query.filter, causes: keys }, false)
  // A cause that lost its last letter between the two reads has no group any more.
  const causes = keys.flatMap((key) => toCause(groups.filter(({ causeKey }) => causeKey === key)) ?? [])
  return { causes, next: page.length < query.countMax ? null : (page.at(-1) ?? null) }
}

export async function findCause(
  storage: CauseReads,
  causeKey: string,
  filter: CountedFilter,
): Promise<CauseFacts | null> {
  const key = await storage.findCauseKey(causeKey)
  if (key === null) return null
  return toCause(await readGroups(storage, { ...filter, causes: [key] }, true)) ?? null
}

async function readGroups(
  storage: Pick<StoreReads, 'listGroups'>,
  filter: CountedFilter,
  isEmptyToo: boolean,
): Promise<GroupFacts[]> {
  const groups: GroupFacts[] = []
  for (;;) {
    const last = groups.at(-1)
    const after = last === undefined ? {} : { after: { count: last.count, id: last.id } }
    const page = await storage.listGroups({ filter, countMax: groupsPerRead, isEmptyToo, ...after })
    groups.push(...page)
    if (page.length < groupsPerRead) return groups
  }
}

/** Title and slug are those of a group with a pinned title, or of the oldest group. */
function toCause(groups: readonly GroupFacts[]): CauseFacts | undefined {
  const oldestFirst = groups.toSorted((a, b) => a.id - b.id)
  const named = oldestFirst.find(({ isTitlePinned }) => isTitlePinned) ?? oldestFirst[0]
  if (named === undefined) return undefined
  const states: Record<string, number> = {}
  for (const group of groups)
    for (const [state, n = 0] of Object.entries(group.states)) states[state] = (states[state] ?? 0) + n
  const newest = groups
    .filter(({ sampleId }) => sampleId !== null)
    .toSorted((a, b) => b.lastSeenAt - a.lastSeenAt)
  return {
    causeKey: named.causeKey,
    title: named.title,
    isTitlePinned: named.isTitlePinned,
    slug: named.slug,
    errorCode: named.errorCode,
    errorClass: named.errorClass,
    firstSeenAt: Math.min(...groups.map(({ firstSeenAt }) => firstSeenAt)),
    lastSeenAt: Math.max(...groups.map(({ lastSeenAt }) => lastSeenAt)),
    sampleId: newest[0]?.sampleId ?? null,
    count: groups.reduce((sum, { count }) => sum + count, 0),
    states,
    groups,
  }
}
