/** Routes of groups: letters of a dead queue that have the same cause. */
import { type Static, Type } from 'typebox'
import { type Instant, usPerSecond } from '../../../core/instant.ts'
import { KnownError } from '../../../errors.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { GroupFacts } from '../../../storage/contract/letters.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { countedFields } from '../filter/filter-fields.ts'
import { readCountedFilter } from '../filter/read-filter.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { nullable, time } from '../values/schemas.ts'
import { countByStatus, LetterSummary, StatusCounts, viewSummary } from './letter-view.ts'

const list = 'groups'
const hourUs = 3_600 * usPerSecond
const trendHours = 24

const text = (description: string) => Type.String({ description })

const groupFields = {
  id: Type.Integer({ description: 'Id of the group.' }),
  queue: text('The dead queue of the group.'),
  fingerprint: text(
    'Identifies the cause. Groups of other dead queues with the same cause have the same value.',
  ),
  title: text('The error message without the parts that differ between letters.'),
  origin: text('The source queue or topic of the letters.'),
  error_code: text('The code of the failure.'),
  slug: text('The error message reduced to one word.'),
  error_class: text('The class of the error.'),
  first_seen_at: time('When the first letter joined the group.'),
  last_seen_at: time('When a letter last joined the group, or failed again after a redrive.'),
  sample_id: nullable(Type.String(), 'The letter of the group that died last.'),
  count: Type.Integer({ description: 'Number of letters that match the filter.' }),
  statuses: StatusCounts,
  trend: Type.Object({
    from: time('The start of the first hour.'),
    counts: Type.Array(Type.Integer(), {
      description: `Letters that joined or failed again, for each of ${trendHours} hours. The last is the current hour.`,
    }),
  }),
}
const GroupView = component('Group', Type.Object(groupFields))

export const groupRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/groups',
    operationId: 'listGroups',
    permission: 'letter.read',
    summary: 'Lists groups of dead letters with the same cause, the largest first.',
    tag: 'groups',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          ...countedFields,
          include_empty: Type.Boolean({
            default: false,
            description: 'Also lists groups without letters that match.',
          }),
        },
        { default: 50, max: 200 },
      ),
      response: {
        200: Type.Object({
          groups: Type.Array(GroupView, { description: 'The groups of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query: { cursor, limit, include_empty, ...fields } }, _reply, context) => {
      const filter = await readCountedFilter(fields, 'query', context.storage)
      const [count, id] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'number'])
      const letters = context.letters()
      const found = await letters.listGroups({
        filter,
        ...(count !== undefined && id !== undefined && { after: { count, id } }),
        countMax: limit,
        isEmptyToo: include_empty,
      })
      const last = found.length < limit ? undefined : found.at(-1)
      return {
        groups: await viewGroups(found, letters, context.clock.now()),
        next_cursor: last === undefined ? null : writeCursor(list, [last.count, last.id]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/groups/{id}',
    operationId: 'getGroup',
    errors: ['GROUP_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns a group, with its newest letter as a sample.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: Type.Object({
        id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Id of the group.' }),
      }),
      response: {
        200: Type.Object({ ...groupFields, sample: nullable(LetterSummary, 'The letter sample_id.') }),
      },
    },
    handler: async ({ params: { id } }, _reply, context) => {
      const letters = context.letters()
      const found = await letters.listGroups({ filter: { groupIds: [id] }, countMax: 1, isEmptyToo: true })
      const [group] = await viewGroups(
        found.filter((facts) => facts.id === id),
        letters,
        context.clock.now(),
      )
      if (group === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${id} does not exist`)
      const sample = group.sample_id === null ? null : await letters.find(group.sample_id)
      return { ...group, sample: sample === null ? null : viewSummary(sample.item, group.slug) }
    },
  }),
]

async function viewGroups(
  found: readonly GroupFacts[],
  letters: Letters,
  now: Instant,
): Promise<Static<typeof GroupView>[]> {
  if (found.length === 0) return []
  const since = Math.floor(now / hourUs) * hourUs - (trendHours - 1) * hourUs
  const arrivals = await letters.groupArrivals(
    found.map(({ id }) => id),
    since,
  )
  const trends = new Map(found.map(({ id }) => [id, new Array<number>(trendHours).fill(0)]))
  for (const { groupId, hour, count } of arrivals) {
    const counts = trends.get(groupId)
    const index = Math.floor((hour - since) / hourUs)
    if (counts !== undefined && index >= 0 && index < trendHours) counts[index] = (counts[index] ?? 0) + count
  }
  return found.map((facts) => ({
    id: facts.id,
    queue: facts.queue,
    fingerprint: facts.fingerprint,
    title: facts.title,
    origin: facts.origin,
    error_code: facts.errorCode,
    slug: facts.slug,
    error_class: facts.errorClass,
    first_seen_at: formatInstant(facts.firstSeenAt),
    last_seen_at: formatInstant(facts.lastSeenAt),
    sample_id: facts.sampleId,
    count: facts.count,
    statuses: countByStatus(facts.states),
    trend: { from: formatInstant(since), counts: trends.get(facts.id) ?? [] },
  }))
}
