/** Routes of causes: the same failure in all dead queues. */
import { Type } from 'typebox'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { countedFields } from '../filter/filter-fields.ts'
import { readCountedFilter } from '../filter/read-filter.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { CauseView, viewCauses } from './cause-view.ts'
import { CauseParams, CauseReport, showCause } from './show.ts'

const list = 'causes'
export const causeRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/causes',
    operationId: 'listCauses',
    permission: 'letter.read',
    summary: 'Lists the causes of dead letters over all dead queues, the one with the most letters first.',
    tag: 'groups',
    dialect: v1,
    schema: {
      querystring: pageQuery(countedFields, { default: 50, max: 200 }),
      response: {
        200: Type.Object({
          causes: Type.Array(CauseView, { description: 'The causes of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query: { cursor, limit, ...fields } }, _reply, context) => {
      const filter = await readCountedFilter(fields, 'query', context.storage)
      const [count, causeKey] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'string'])
      const letters = context.letters()
      const { causes, next } = await letters.causes({
        filter,
        ...(count !== undefined && causeKey !== undefined && { after: { count, causeKey } }),
        countMax: limit,
      })
      return {
        causes: await viewCauses(causes, letters, context.clock.now()),
        next_cursor: next === null ? null : writeCursor(list, [next.count, next.causeKey]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/causes/{id}',
    operationId: 'getCause',
    errors: ['CAUSE_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns a cause with its counts per dead queue, and its newest letter as a sample.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: CauseParams,
      response: { 200: CauseReport },
    },
    handler: async ({ params: { id } }, _reply, context) => showCause(id, context),
  }),
]
