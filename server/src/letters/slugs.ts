/**
 * Gives letters the slug under which they are counted, so that lists, filters, statistics and purges agree.
 */
import { toReasonSlug } from '../core/reason.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Letters } from './letters.ts'

const rememberedMax = 20_000

export function createSlugs(storage: Pick<StoreReads, 'groupSlugs'>): Letters['computeSlugs'] {
  /** Safe to cache: the slug of a group never changes, and group ids are never reused. */
  const remembered = new Map<number, string>()
  return async (letters) => {
    const known = new Map<number, string>()
    const missing = new Set<number>()
    for (const { groupId } of letters) {
      if (groupId === null) continue
      const slug = remembered.get(groupId)
      if (slug === undefined) missing.add(groupId)
      else known.set(groupId, slug)
    }
    const found = missing.size === 0 ? [] : await storage.groupSlugs([...missing])
    if (remembered.size + found.length > rememberedMax) remembered.clear()
    for (const { id, slug } of found) {
      known.set(id, slug)
      remembered.set(id, slug)
    }
    return ({ groupId, failure }) => known.get(groupId ?? -1) ?? toReasonSlug(failure?.message ?? null)
  }
}
