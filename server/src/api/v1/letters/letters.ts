/**
 * Routes that list letters and return one.
 *
 * The other files of this folder: `capture.ts` stores failed messages of other systems, `redrive.ts` and
 * `discard.ts` change letters that the caller names, `archive.ts`, `counts.ts`, `export.ts` and `groups.ts`
 * read. The `*-view.ts` files and `letter-detail.ts` write letters into answers.
 */
import { Type } from 'typebox'
import { searchMsDefault } from '../../../storage/search/pacer.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { filterFields } from '../filter/filter-fields.ts'
import { readFilter } from '../filter/read-filter.ts'
import { NextCursor, pageQuery } from '../values/cursor.ts'
import { LetterId, nullable } from '../values/schemas.ts'
import { answerLetter, createLetterNotFoundError, LetterQuery, LetterView } from './letter-detail.ts'
import { letterOrders, orderFields, readLetterCursor, writeLetterCursor } from './letter-order.ts'
import { LetterSummary, viewSummary } from './letter-view.ts'

export const letterRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters',
    operationId: 'listLetters',
    permission: 'letter.read',
    summary: 'Lists the dead letters that match all conditions.',
    tag: 'letters',
    dialect: v1,
    slowMs: 2 * searchMsDefault,
    schema: {
      querystring: pageQuery({ ...filterFields, ...orderFields }, { default: 50, max: 500 }),
      response: {
        200: Type.Object({
          letters: Type.Array(LetterSummary, { description: 'The letters of this page.' }),
          next_cursor: NextCursor,
          examined_count: Type.Integer({
            description: 'Number of letters that were examined for this page.',
          }),
          is_complete: Type.Boolean({
            description: 'False if the search stopped before the page was full. Continue with next_cursor.',
          }),
          total: nullable(
            Type.Integer(),
            'Number of letters that match. Null if that needs a search, or if there are too many error classes to ' +
              'count them separately.',
          ),
        }),
      },
    },
    handler: async ({ query }, _reply, context) => {
      const { cursor, limit, order_by, order, ...fields } = query
      const filter = await readFilter(fields, 'query', context.storage)
      const list = `letters:${order_by}:${order}`
      const after = cursor === undefined ? undefined : readLetterCursor(cursor, list)
      const letters = context.letters()
      const page = await letters.list({
        filter,
        order: letterOrders[order_by],
        isDescending: order === 'desc',
        ...(after !== undefined && { after }),
        countMax: limit,
        bytes: 'head',
      })
      const labelOf = await letters.labels(page.letters)
      const { next } = page
      return {
        letters: page.letters.map((letter) => viewSummary(letter, labelOf(letter))),
        next_cursor: next === null ? null : writeLetterCursor(next, list),
        examined_count: page.examinedCount,
        is_complete: next === null || page.letters.length >= limit,
        total: page.total,
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/letters/{id}',
    operationId: 'getLetter',
    errors: ['LETTER_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns a dead letter, live or archived, with its failures, redrives, edits and audit rows.',
    tag: 'letters',
    dialect: v1,
    answerKind: 'large',
    schema: {
      params: Type.Object({ id: LetterId }),
      querystring: LetterQuery,
      response: { 200: LetterView },
    },
    handler: async ({ params: { id }, query: { payload_form } }, reply, context) => {
      const detail = await context.letters().find(id)
      if (detail === null) throw createLetterNotFoundError(id)
      return answerLetter(detail, payload_form, reply, context)
    },
  }),
]
