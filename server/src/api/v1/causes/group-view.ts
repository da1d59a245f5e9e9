/** The fields of groups and causes in answers, with their trends. */
import { type Static, Type } from 'typebox'
import { type Instant, usPerSecond } from '../../../core/time/instant.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { GroupFacts } from '../../../storage/contract/letters.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { countByStatus, StatusCounts } from '../letters/letter-view.ts'
import { nullable, time } from '../values/schemas.ts'
import { LifecycleView, viewLifecycle } from './lifecycle-view.ts'

const hourUs = 3_600 * usPerSecond
const trendHours = 24

export const text = (description: string) => Type.String({ description })

/** The fields that groups and causes share. */
export const commonFields = {
  title: text('The pinned title, or the error message without the parts that differ between letters.'),
  is_title_pinned: Type.Boolean({ description: 'Whether a person chose the title.' }),
  error_code: text('The code of the failure.'),
  slug: text('The error message reduced to one word.'),
  error_class: text('The class of the error.'),
  first_seen_at: time('When the first letter arrived.'),
  last_seen_at: time('When a letter last arrived, or failed again after a redrive.'),
  sample_id: nullable(Type.String(), 'The letter that died last.'),
  count: Type.Integer({ description: 'Number of letters that match the filter.' }),
  statuses: StatusCounts,
  trend: Type.Object({
    from: time('The start of the first hour.'),
    counts: Type.Array(Type.Integer(), {
      description: `Letters that arrived or failed again, for each of ${trendHours} hours. The last is the current hour.`,
    }),
  }),
}

export const groupFields = {
  id: Type.Integer({ description: 'Id of the group.' }),
  queue: text('The dead queue of the group.'),
  fingerprint: text('Identifies the cause and the origin of the first letter.'),
  cause_id: text('Id of the cause. Groups of other dead queues with the same cause have the same id.'),
  merged_ids: Type.Array(Type.Integer(), {
    description: 'Ids of the groups that were merged into this one. Requests with these ids mean this group.',
  }),
  origin: text('The source queue or topic of the letters.'),
  lifecycle: LifecycleView,
  ...commonFields,
}
export const GroupView = component('Group', Type.Object(groupFields))
export type GroupView = Static<typeof GroupView>

/** The hourly arrivals of groups in the last 24 hours. */
export type Trends = Readonly<{ from: Instant; of(groupIds: readonly number[]): number[] }>

export async function readTrends(
  letters: Pick<Letters, 'groupArrivals'>,
  groupIds: readonly number[],
  now: Instant,
): Promise<Trends> {
  const from = Math.floor(now / hourUs) * hourUs - (trendHours - 1) * hourUs
  const arrivals = groupIds.length === 0 ? [] : await letters.groupArrivals(groupIds, from)
  const trends = new Map(groupIds.map((id) => [id, new Array<number>(trendHours).fill(0)]))
  for (const { groupId, hour, count } of arrivals) {
    const counts = trends.get(groupId)
    const index = Math.floor((hour - from) / hourUs)
    if (counts !== undefined && index >= 0 && index < trendHours) counts[index] = (counts[index] ?? 0) + count
  }
  return {
    from,
    of: (ids) =>
      ids.reduce<number[]>(
        (sum, id) => sum.map((count, index) => count + (trends.get(id)?.[index] ?? 0)),
        new Array<number>(trendHours).fill(0),
      ),
  }
}

export async function viewGroups(
  found: readonly GroupFacts[],
  letters: Pick<Letters, 'groupArrivals'>,
  now: Instant,
): Promise<GroupView[]> {
  const ids = found.map(({ id }) => id)
  const trends = await readTrends(letters, ids, now)
  return found.map((facts) => ({
    id: facts.id,
    queue: facts.queue,
    fingerprint: facts.fingerprint,
    cause_id: facts.causeKey,
    merged_ids: [...facts.mergedIds],
    origin: facts.origin,
    lifecycle: viewLifecycle(facts.lifecycle, now),
    ...viewCommon(facts),
    trend: { from: formatInstant(trends.from), counts: trends.of([facts.id]) },
  }))
}

type CommonFacts = Omit<
  GroupFacts,
  'id' | 'queue' | 'fingerprint' | 'origin' | 'mergedIds' | 'causeKey' | 'lifecycle'
>

export function viewCommon(facts: CommonFacts) {
  return {
    title: facts.title,
    is_title_pinned: facts.isTitlePinned,
    error_code: facts.errorCode,
    slug: facts.slug,
    error_class: facts.errorClass,
    first_seen_at: formatInstant(facts.firstSeenAt),
    last_seen_at: formatInstant(facts.lastSeenAt),
    sample_id: facts.sampleId,
    count: facts.count,
    statuses: countByStatus(facts.states),
  }
}
