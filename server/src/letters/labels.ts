/**
 * Gives letters the slug under which they are counted, and the group in which they are shown, so that lists,
 * filters, statistics and purges agree.
 */

import { toReasonSlug } from '../core/dead-letters/reason.ts'
import type { GroupId } from '../core/ids/ids.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Letters } from './letters.ts'

/**
 * `slug`: the slug of the letter's own group. In a queue with too many causes, that can differ from the slug
 * of the letter's own message. `groupId`: the group in which the letter is shown, after merges.
 */
export type LetterLabel = Readonly<{ slug: string; groupId: GroupId | null }>

/** Labels are not cached, because a merge of groups changes them. A page of letters needs one read. */
export function createLabels(storage: Pick<StoreReads, 'readGroupLabels'>): Letters['labels'] {
  return async (letters) => {
    const groupIds = [...new Set(letters.flatMap(({ groupId }) => groupId ?? []))]
    const found = groupIds.length === 0 ? [] : await storage.readGroupLabels(groupIds)
    const labels = new Map(found.map(({ id, slug, shownAs }) => [id, { slug, groupId: shownAs }]))
    return ({ groupId, failure }) =>
      labels.get(groupId ?? -1) ?? { slug: toReasonSlug(failure?.message ?? null), groupId }
  }
}
