/** Letters that left the live ones by retention. Bringing them back: actions.ts. */
import { type Static, Type } from 'typebox'
import { route } from '../../route.ts'
import { formatInstant } from '../../wire-time.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../cursor.ts'
import { v1 } from '../dialect.ts'
import { countedFields, readCountedFilter } from '../letter-filter.ts'
import { LetterSummary, Time, viewSummary } from './letter-view.ts'
import { LetterId, LetterView, letterNotFound, namesOf, viewLetter } from './letters.ts'
import { payloadForms } from './payload-view.ts'
import { firstBatch, nextBatch } from './read-letters.ts'

const list = 'archive'
const ArchivedSummary = Type.Object({ ...LetterSummary.properties, archived_at: Time })

export const archiveRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/archive',
    permission: 'letter.read',
    summary: 'Archived letters, the last archived first.',
    tag: 'archive',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        { queue: countedFields.queue, class: countedFields.class },
        { default: 50, max: 500 },
      ),
      response: { 200: Type.Object({ letters: Type.Array(ArchivedSummary), next_cursor: NextCursor }) },
    },
    handler: async ({ query: { cursor, limit, ...fields } }, _reply, context) => {
      const { queues } = await readCountedFilter(fields, 'query', context.storage)
      const [archivedAt, id] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'string'])
      const letters: Static<typeof ArchivedSummary>[] = []
      let after = archivedAt === undefined || id === undefined ? undefined : { archivedAt, id }
      let isMore = true
      for (let size = firstBatch; isMore && letters.length < limit; ) {
        const countMax = Math.min(size, limit - letters.length)
        const found = await context.letters().listArchived({
          ...(queues !== undefined && { queues }),
          ...(after !== undefined && { after }),
          countMax,
        })
        const slugOf = await context.letters().slugs(found.map(({ item }) => item))
        for (const archived of found) {
          const archived_at = formatInstant(archived.archivedAt)
          letters.push({ ...viewSummary(archived.item, slugOf(archived.item)), archived_at })
          after = { archivedAt: archived.archivedAt, id: archived.item.id }
        }
        isMore = found.length === countMax
        size = nextBatch(
          found.map(({ item }) => item),
          size,
        )
      }
      const next = isMore ? after : undefined
      return {
        letters,
        next_cursor: next === undefined ? null : writeCursor(list, [next.archivedAt, next.id]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/archive/{id}',
    permission: 'letter.read',
    summary: 'One archived letter.',
    tag: 'archive',
    dialect: v1,
    schema: {
      params: Type.Object({ id: LetterId }),
      querystring: Type.Object(
        { payload: Type.Enum([...payloadForms], { default: 'auto' }) },
        { additionalProperties: false },
      ),
      response: { 200: LetterView },
    },
    handler: async ({ params: { id }, query: { payload } }, _reply, context) => {
      const letters = context.letters()
      const detail = await letters.find(id)
      if (detail === null || detail.archivedAt === null) throw letterNotFound(id)
      return viewLetter(detail, payload, await namesOf(detail, letters))
    },
  }),
]
