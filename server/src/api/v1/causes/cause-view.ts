/** A cause in answers. */
import { type Static, Type } from 'typebox'
import type { Instant } from '../../../core/time/instant.ts'
import type { CauseFacts } from '../../../letters/grouping/causes.ts'
import type { Letters } from '../../../letters/letters.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { commonFields, readTrends, text, viewCommon } from './group-view.ts'

/** The queues of a cause that an answer names. */
const queuesMax = 100

export const causeFields = {
  id: text('Id of the cause: the same failure has the same id in all dead queues.'),
  ...commonFields,
  queues: Type.Array(
    Type.Object({
      queue: text('A dead queue.'),
      count: Type.Integer({ description: 'Number of letters in this queue that match the filter.' }),
      group_ids: Type.Array(Type.Integer(), { description: 'The groups of the cause in this queue.' }),
    }),
    { description: `The dead queues with this cause, the most letters first; at most ${queuesMax}.` },
  ),
  queue_count: Type.Integer({ description: 'Number of dead queues with this cause.' }),
}
export const CauseView = component('Cause', Type.Object(causeFields))
export type CauseView = Static<typeof CauseView>

export async function viewCauses(
  found: readonly CauseFacts[],
  letters: Pick<Letters, 'groupArrivals'>,
  now: Instant,
): Promise<CauseView[]> {
  const groupIds = found.flatMap(({ groups }) => groups.map(({ id }) => id))
  const trends = await readTrends(letters, groupIds, now)
  return found.map((cause) => {
    const queues = sumByQueue(cause)
    return {
      id: cause.causeKey,
      ...viewCommon(cause),
      queues: queues.slice(0, queuesMax),
      queue_count: queues.length,
      trend: { from: formatInstant(trends.from), counts: trends.of(cause.groups.map(({ id }) => id)) },
    }
  })
}

/** A queue can have several groups of one cause: one for each origin. */
function sumByQueue({ groups }: CauseFacts): CauseView['queues'] {
  const sums = new Map<string, { queue: string; count: number; group_ids: number[] }>()
  for (const { queue, count, id } of groups) {
    const sum = sums.get(queue) ?? { queue, count: 0, group_ids: [] }
    sum.count += count
    sum.group_ids.push(id)
    sums.set(queue, sum)
  }
  return [...sums.values()].sort((a, b) => b.count - a.count || (a.queue < b.queue ? -1 : 1))
}
