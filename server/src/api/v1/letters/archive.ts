/** Letters that left the live ones by retention. Bringing them back: actions.ts. */
import { Type } from 'typebox'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { archiveFields, readArchiveFilter } from '../filter/letter-filter.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { LetterSummary, Time, viewSummary } from './letter-view.ts'
import { LetterId, LetterView, letterNotFound, namesOf, viewLetter } from './letters.ts'
import { payloadForms } from './payload-view.ts'

const list = 'archive'
const searchMsMax = 1_000
const ArchivedSummary = Type.Object({ ...LetterSummary.properties, archived_at: Time })

export const archiveRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/archive',
    permission: 'letter.read',
    summary: 'Archived letters that match, the last archived first.',
    tag: 'archive',
    dialect: v1,
    slowMs: 2 * searchMsMax,
    schema: {
      querystring: pageQuery(archiveFields, { default: 50, max: 500 }),
      response: {
        200: Type.Object({
          letters: Type.Array(ArchivedSummary),
          next_cursor: NextCursor,
          looked: Type.Integer({
            description: 'How much of what is archived was looked at to find these.',
          }),
          is_complete: Type.Boolean({
            description: 'False: the search took too long to fill the page. Go on with next_cursor.',
          }),
        }),
      },
    },
    handler: async ({ query: { cursor, limit, ...fields } }, _reply, context) => {
      const filter = await readArchiveFilter(fields, context.storage)
      const [archivedAt, id] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'string'])
      const letters = context.letters()
      const page = await letters.listArchived({
        filter,
        ...(archivedAt !== undefined && id !== undefined && { after: { archivedAt, id } }),
        countMax: limit,
        msMax: searchMsMax,
      })
      const slugOf = await letters.slugs(page.letters.map(({ item }) => item))
      const { next } = page
      return {
        letters: page.letters.map(({ item, archivedAt: at }) => ({
          ...viewSummary(item, slugOf(item)),
          archived_at: formatInstant(at),
        })),
        next_cursor: next === null ? null : writeCursor(list, [next.archivedAt, next.id]),
        looked: page.looked,
        is_complete: next === null || page.letters.length >= limit,
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
