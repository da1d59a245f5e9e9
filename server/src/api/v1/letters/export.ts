/** Letters as lines of JSON, however many: read only as fast as they are taken, and no longer than somebody does. */
import { Readable } from 'node:stream'
import { Type } from 'typebox'
import { abortWhenClientGone } from '../../http/client-gone.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { filterFields, readFilter } from '../filter/letter-filter.ts'
import { exportLines } from './export-lines.ts'
import { letterOrders, orderFields, readLetterCursor } from './letters.ts'
import { readLetters } from './read-letters.ts'

export const exportRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters/export',
    permission: 'letter.read',
    summary:
      'All dead letters that match, whole, as one JSON object per line; the last line says whether they are all.',
    tag: 'letters',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    schema: {
      querystring: Type.Object(
        {
          ...filterFields,
          ...orderFields,
          cursor: Type.Optional(
            Type.String({
              maxLength: 1_000,
              description:
                '`next_cursor` of the last line, or `cursor` of the last letter of an export that was cut.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: {
          description:
            'A letter per line, each with a `cursor`. The last line is {"end": {"is_complete", "letters", "looked", "next_cursor", "error"}}; without it the answer was cut, and the `cursor` of the last whole line goes on after it.',
          content: { 'application/x-ndjson': { schema: Type.String() } },
        },
      },
    },
    handler: async ({ query, id: requestId }, reply, context) => {
      const { cursor, order_by, order, ...fields } = query
      const filter = await readFilter(fields, 'query', context.storage)
      const list = `letters:${order_by}:${order}`
      const after = cursor === undefined ? undefined : readLetterCursor(cursor, list)
      const signal = AbortSignal.any([abortWhenClientGone(reply).signal, context.stopping])
      const letters = context.letters()
      const batches = readLetters(letters, {
        filter,
        order: letterOrders[order_by],
        isDescending: order === 'desc',
        ...(after !== undefined && { after }),
      })
      // Before the answer begins: what fails at once is still an error with its status.
      const first = await batches.next()
      const source = { first: first.done ? undefined : first.value, rest: batches, letters }
      const place = { list, by: letterOrders[order_by] }
      const lines = exportLines(source, after, place, signal, (error) =>
        context.log.error({ request_id: requestId, err: error }, 'an export failed after it had begun'),
      )
      return reply
        .header('content-type', 'application/x-ndjson; charset=utf-8')
        .header('content-disposition', 'attachment; filename="letters.ndjson"')
        .send(Readable.from(lines, { objectMode: false, highWaterMark: 64 * 1_024 }))
    },
  }),
]
