/** Letters with one cause: what an operator looks at first. */
import { type Static, Type } from 'typebox'
import { type Instant, usPerSecond } from '../../../core/instant.ts'
import { KnownError } from '../../../errors.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { GroupFacts } from '../../../storage/contract/letters.ts'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { countedFields, readCountedFilter } from '../filter/letter-filter.ts'
import { NextCursor, nullable, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { LetterSummary, Time, viewSummary } from './letter-view.ts'
import { StatusCounts, statusCounts } from './status-counts.ts'

const list = 'groups'
const hourUs = 3_600 * usPerSecond
const trendHours = 24

const groupFields = {
  id: Type.Integer(),
  queue: Type.String({ description: 'The dead queue that it is in.' }),
  fingerprint: Type.String({ description: 'The same wherever letters have this cause.' }),
  title: Type.String({ description: 'The message without what changes from letter to letter.' }),
  origin: Type.String(),
  reason: Type.String(),
  slug: Type.String(),
  error_class: Type.String(),
  first_seen_at: Time,
  last_seen_at: Type.String({
    format: 'date-time',
    description: 'When it last got a letter: one that died then, or one that was redriven and failed again.',
  }),
  sample_id: nullable(Type.String(), 'Of its letters the one that died last.'),
  count: Type.Integer({ description: 'Letters that match the filter.' }),
  statuses: StatusCounts,
  trend: Type.Object({
    from: Type.String({ format: 'date-time', description: 'Where the first hour begins.' }),
    counts: Type.Array(Type.Integer(), {
      description: `Letters that it got per hour, new ones and those that failed again, ${trendHours} of them, the present one last.`,
    }),
  }),
}
const GroupView = Type.Object(groupFields)

export const groupRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/groups',
    permission: 'letter.read',
    summary: 'Groups of dead letters with one cause, those with the most letters first.',
    tag: 'groups',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          ...countedFields,
          include_empty: Type.Boolean({
            default: false,
            description: 'Also groups without a letter that matches.',
          }),
        },
        { default: 50, max: 200 },
      ),
      response: { 200: Type.Object({ groups: Type.Array(GroupView), next_cursor: NextCursor }) },
    },
    handler: async ({ query: { cursor, limit, include_empty, ...fields } }, _reply, context) => {
      const filter = await readCountedFilter(fields, 'query', context.storage)
      const [count, id] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'number'])
      const letters = context.letters()
      const found = await letters.groups({
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
    permission: 'letter.read',
    summary: 'One group, with its newest letter as a sample.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: Type.Object({ id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) }),
      response: { 200: Type.Object({ ...groupFields, sample: nullable(LetterSummary) }) },
    },
    handler: async ({ params: { id } }, _reply, context) => {
      const letters = context.letters()
      const found = await letters.groups({ filter: { groupIds: [id] }, countMax: 1, isEmptyToo: true })
      const [group] = await viewGroups(
        found.filter((facts) => facts.id === id),
        letters,
        context.clock.now(),
      )
      if (group === undefined) throw new KnownError('GROUP_NOT_FOUND', `there is no group ${id}`)
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
    reason: facts.reason,
    slug: facts.slug,
    error_class: facts.errorClass,
    first_seen_at: formatInstant(facts.firstSeenAt),
    last_seen_at: formatInstant(facts.lastSeenAt),
    sample_id: facts.sampleId,
    count: facts.count,
    statuses: statusCounts(facts.states),
    trend: { from: formatInstant(since), counts: trends.get(facts.id) ?? [] },
  }))
}
