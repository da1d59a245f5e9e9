/** The checks of merges, with the same messages in both stores. */
import { KnownError } from '../../../errors.ts'

/** `shownAs`: the group that it is part of, or its own id. */
export type GroupToMerge = Readonly<{ id: number; queueId: number; queue: string; shownAs: number }>

/** Returns the groups by id. Rejects if one is missing, or if they are in several queues. */
export function checkMerge(
  wanted: readonly number[],
  found: readonly GroupToMerge[],
): ReadonlyMap<number, GroupToMerge> {
  const byId = new Map(found.map((group) => [group.id, group]))
  const missing = wanted.find((id) => !byId.has(id))
  if (missing !== undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${missing} does not exist`)
  const [first] = found
  const other = found.find(({ queueId }) => queueId !== first?.queueId)
  if (first !== undefined && other !== undefined) {
    throw new KnownError(
      'BAD_REQUEST',
      `group ${first.id} is in dead queue ${first.queue} and group ${other.id} in ${other.queue}; merge their causes instead`,
    )
  }
  return byId
}

export function causeNotFound(causeKey: string): KnownError {
  return new KnownError('CAUSE_NOT_FOUND', `cause ${JSON.stringify(causeKey)} does not exist`)
}
