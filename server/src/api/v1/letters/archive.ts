/** Routes that read the archive. `discard.ts` has the route that restores letters. */
import { Type } from 'typebox'
import { searchMsDefault } from '../../../storage/search/pacer.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { archiveFields } from '../filter/filter-fields.ts'
import { readArchiveFilter } from '../filter/read-filter.ts'
import { NextCursor, pageQuery } from '../values/cursor.ts'
import { LetterId, time } from '../values/schemas.ts'
import { answerLetter, createLetterNotFoundError, LetterQuery, LetterView } from './letter-detail.ts'
import { readLetterCursor, writeLetterCursor } from './letter-order.ts'
import { LetterSummary, viewSummary } from './letter-view.ts'

const list = 'archive'
const ArchivedSummary = component(
  'ArchivedLetterSummary',
  Type.Object({
    ...LetterSummary.properties,
    archived_at: time('When it was archived.'),
  }),
)

export const archiveRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/archive',
    operationId: 'listArchivedLetters',
    permission: 'letter.read',
    summary: 'Lists the archived letters that match all conditions, the last archived first.',
    tag: 'archive',
    dialect: v1,
    slowMs: 2 * searchMsDefault,
    schema: {
      querystring: pageQuery(archiveFields, { default: 50, max: 500 }),
      response: {
        200: Type.Object({
          letters: Type.Array(ArchivedSummary, { description: 'The letters of this page.' }),
          next_cursor: NextCursor,
          examined_count: Type.Integer({
            description: 'Number of archived letters that were examined for this page.',
          }),
          is_complete: Type.Boolean({
            description: 'False if the search stopped before the page was full. Continue with next_cursor.',
          }),
        }),
      },
    },
    handler: async ({ query: { cursor, limit, ...fields } }, _reply, context) => {
      const filter = await readArchiveFilter(fields, context.storage)
      const after = cursor === undefined ? undefined : readLetterCursor(cursor, list)
      const letters = context.letters()
      const page = await letters.listArchived({
        filter,
        ...(after !== undefined && { after }),
        countMax: limit,
      })
      const labelOf = await letters.labels(page.letters.map(({ item }) => item))
      const { next } = page
      return {
        letters: page.letters.map(({ item, archivedAt: at }) => ({
          ...viewSummary(item, labelOf(item)),
          archived_at: formatInstant(at),
        })),
        next_cursor: next === null ? null : writeLetterCursor(next, list),
        examined_count: page.examinedCount,
        is_complete: next === null || page.letters.length >= limit,
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/archive/{id}',
    operationId: 'getArchivedLetter',
    errors: ['LETTER_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns an archived letter.',
    tag: 'archive',
    dialect: v1,
    answerKind: 'large',
    schema: {
      params: Type.Object({ id: LetterId }),
      querystring: LetterQuery,
      response: { 200: LetterView },
    },
    handler: async ({ params: { id }, query: { payload_form } }, reply, context) => {
      const detail = await context.letters().find(id)
      if (detail === null || detail.archivedAt === null) throw createLetterNotFoundError(id)
      return answerLetter(detail, payload_form, reply, context)
    },
  }),
]
