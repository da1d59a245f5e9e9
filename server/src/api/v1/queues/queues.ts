import { Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { nullable, QueueParams } from '../values/schemas.ts'
import { QueueView, viewQueue } from './queue-view.ts'

export const queueRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/queues',
    permission: 'queue.list',
    summary: 'Lists queues with their policy and exact counts, in byte order of their names.',
    tag: 'queues',
    dialect: v1,
    schema: {
      querystring: Type.Object(
        {
          after: Type.Optional(
            Type.String({
              maxLength: 512,
              description: 'Only queues after this name: `next` of the page before.',
            }),
          ),
          limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100, description: 'Queues per page.' }),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          queues: Type.Array(QueueView, { description: 'The queues of this page.' }),
          next: nullable(Type.String(), 'The `after` of the next page; null on the last page.'),
        }),
      },
    },
    handler: async ({ query: { after, limit } }, _reply, context) => {
      const storage = context.storage()
      // Reads two more: one shows whether a next page exists, and `from` includes the name itself.
      const [found, counts] = await Promise.all([
        storage.listQueues({ ...(after !== undefined && { from: after }), countMax: limit + 2 }),
        storage.counts({}),
      ])
      const others = found.filter((queue) => queue.name !== after)
      const page = others.slice(0, limit)
      const byQueue = Map.groupBy(counts, (partition) => partition.queue)
      return {
        queues: page.map((queue) => viewQueue(queue, byQueue.get(queue.name) ?? [])),
        next: others.length > limit ? (page.at(-1)?.name ?? null) : null,
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/queues/{name}',
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
      const [queue, counts] = await Promise.all([storage.getQueue(name), storage.counts({ queue: name })])
      if (queue === null) {
        throw new KnownError('QUEUE_NOT_FOUND', `queue ${JSON.stringify(name)} does not exist`)
      }
      return viewQueue(queue, counts)
    },
  }),
]
