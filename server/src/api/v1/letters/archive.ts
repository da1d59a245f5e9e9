/** Letters that left the live ones by retention. Bringing them back: actions.ts. */
import { Type } from 'typebox'
import { route } from '../../route.ts'
import { formatInstant } from '../../wire-time.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../cursor.ts'
import { v1 } from '../dialect.ts'
import { countedFields, readCountedFilter } from '../letter-filter.ts'
import { LetterSummary, Time, viewSummary } from './letter-view.ts'
import { LetterId, LetterView, letterNotFound, namesOf, viewLetter } from './letters.ts'
import { payloadForms } from './payload-view.ts'

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
      const found = await context.letters().listArchived({
        ...(queues !== undefined && { queues }),
        ...(archivedAt !== undefined && id !== undefined && { after: { archivedAt, id } }),
        countMax: limit,
      })
      const slugOf = await context.letters().slugs(found.map(({ item }) => item))
      const last = found.length === limit ? found.at(-1) : undefined
      return {
        letters: found.map(({ item, archivedAt: at }) => ({
          ...viewSummary(item, slugOf(item)),
          archived_at: formatInstant(at),
        })),
        next_cursor: last === undefined ? null : writeCursor(list, [last.archivedAt, last.item.id]),
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
