import { type LetterId, parseLetterId } from '../core/ids/ids.ts'
import { convertToUuid } from '../core/ids/ksuid.ts'
import type { StoreReads } from '../storage/contract/storage.ts'

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A letter is identified by the root id: the id that its item had first. */
export function isRootId(id: string): boolean {
  return parseLetterId(id) !== undefined
}

/** The UUID of a letter, from its root id or UUID; undefined for other text. */
export function toLetterUuid(id: string): string | undefined {
  if (isRootId(id)) return convertToUuid(id)
  const text = id.toLowerCase()
  return uuidPattern.test(text) ? text : undefined
}

/**
 * The letters, live or archived, that have or had these ids: their letter id, its UUID, their source id, an
 * id before they died, or the id of a redrive.
 */
export async function findIdsOfLetters(
  storage: Pick<StoreReads, 'findLettersByUuid' | 'findLetterIds'>,
  ids: readonly string[],
): Promise<readonly LetterId[]> {
  const uuids = ids.flatMap((id) => toLetterUuid(id) ?? [])
  const [byUuid, byId] = await Promise.all([storage.findLettersByUuid(uuids), storage.findLetterIds(ids)])
  // An id that is no letter's can start with the UUID of one.
  const own = byUuid.filter(({ uuid, letterId }) =>
    ids.some((id) => toLetterUuid(id) === uuid && (!isRootId(id) || id === letterId)),
  )
  return [...new Set([...own, ...byId].map(({ letterId }) => letterId))]
}
