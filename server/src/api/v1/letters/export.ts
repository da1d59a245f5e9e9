/** The export of letters as lines of JSON. Letters are read only as fast as the client receives them. */
import { Type } from 'typebox'
import { abortOnDisconnect } from '../../http/connections/client-disconnect.ts'
import { route } from '../../http/route.ts'
import { toStream } from '../../http/wire/json-parts.ts'
import { v1 } from '../dialect.ts'
import { filterFields } from '../filter/filter-fields.ts'
import { readFilter } from '../filter/read-filter.ts'
import { exportBatchMax, readBatch, writeExportLines } from './export-lines.ts'
import { letterOrders, orderFields, readLetterCursor } from './letter-order.ts'

export const exportRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters/export',
    operationId: 'exportLetters',
    permission: 'letter.read',
    summary:
      'Exports all dead letters that match, complete, as one JSON object per line. The last line reports whether ' +
      'the export is complete.',
    tag: 'letters',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    answerKind: 'export',
    schema: {
      querystring: Type.Object(
        {
          ...filterFields,
          ...orderFields,
          cursor: Type.Optional(
            Type.String({
              maxLength: 1_000,
              description:
                'Continues an incomplete export: `next_cursor` of its last line, or `cursor` of its last complete ' +
                'line.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: {
          description:
            'A letter per line, each with a `cursor`. The last line is {"end": {"is_complete", "letters", "examined_count", ' +
            '"next_cursor", "error"}}. Without it the answer was cut off; continue with the `cursor` of the last ' +
            'complete line.',
          content: { 'application/x-ndjson': { schema: Type.String() } },
        },
      },
    },
    handler: async ({ query, id: requestId }, reply, context) => {
      const { cursor, order_by, order: direction, ...fields } = query
      const filter = await readFilter(fields, 'query', context.storage)
      const list = `letters:${order_by}:${direction}`
      const after = cursor === undefined ? undefined : readLetterCursor(cursor, list)
      const signal = AbortSignal.any([abortOnDisconnect(reply).signal, context.stopping])
      const letters = context.letters()
      const order = letterOrders[order_by]
      const batches = letters.readAll({
        filter,
        order,
        isDescending: direction === 'desc',
        ...(after !== undefined && { after }),
        countMax: exportBatchMax,
        bytes: 'all',
      })
      // Read before the answer begins, so that a failure is still an error with its status.
      const first = await readBatch(batches)
      const lines = writeExportLines({ batches, first, letters, after, list, order }, signal, (error) =>
        context.log.error({ request_id: requestId, err: error }, 'an export failed after it had begun'),
      )
      return reply
        .header('content-type', 'application/x-ndjson; charset=utf-8')
        .header('content-disposition', 'attachment; filename="letters.ndjson"')
        .send(toStream(lines))
    },
  }),
]
