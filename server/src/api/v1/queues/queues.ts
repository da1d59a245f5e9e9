import { Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { QueueParams } from '../values/schemas.ts'
import { QueueView, viewQueue } from './queue-view.ts'

const list = 'queues'

export const queueRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/queues',
    operationId: 'listQueues',
    permission: 'queue.list',
    summary: 'Lists queues with their policy and exact counts, in byte order of their names.',
    tag: 'queues',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        {
          namespace: Type.Optional(
            Type.String({ minLength: 1, maxLength: 256, description: 'Only queues in this namespace.' }),
          ),
        },
        { default: 100, max: 1_000 },
      ),
      response: {
        200: Type.Object({
          queues: Type.Array(QueueView, { description: 'The queues of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query: { namespace, cursor, limit } }, _reply, context) => {
      const [after] = cursor === undefined ? [] : readCursor(cursor, list, ['string'])
      const storage = context.storage()
      // Reads two more: one shows whether a next page exists, and `from` includes the name itself.
      const found = await storage.listQueues({
        ...(after !== undefined && { from: after }),
        ...(namespace !== undefined && { namespace }),
        countMax: limit + 2,
      })
      const others = found.filter((queue) => queue.name !== after)
      const page = others.slice(0, limit)
      const last = others.length > limit ? page.at(-1) : undefined
      const names = page.map(({ name }) => name)
      const counts = await storage.readQueueCounts({ queues: names, countMax: names.length })
      const byQueue = Map.groupBy(counts, (each) => each.queue)
      return {
        queues: page.map((queue) => viewQueue(queue, byQueue.get(queue.name) ?? [])),
        next_cursor: last === undefined ? null : writeCursor(list, [last.name]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/queues/{name}',
    operationId: 'getQueue',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'queue.stats',
    summary: 'Returns a queue with its policy and exact counts.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: QueueParams,
      response: { 200: QueueView },
    },
    handler: async ({ params: { name } }, _reply, context) => {
      const storage = context.storage()
      const [queue, counts] = await Promise.all([
        storage.getQueue(name),
        storage.readQueueCounts({ queues: [name], countMax: 1 }),
      ])
      if (queue === null) {
        throw new KnownError('QUEUE_NOT_FOUND', `queue ${JSON.stringify(name)} does not exist`)
      }
      return viewQueue(queue, counts)
    },
  }),
]
