import { Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { QueueView, viewQueue } from './queue-view.ts'

const QueueName = Type.String({ minLength: 1, maxLength: 512 })

export const queueRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/queues',
    permission: 'queue.list',
    summary: 'Queues with their policy and exact counts, in byte order of name.',
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
          limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          queues: Type.Array(QueueView),
          next: Type.Union([Type.String(), Type.Null()], {
            description: 'What to give as `after` for the next page; null on the last one.',
          }),
        }),
      },
    },
    handler: async ({ query: { after, limit } }, _reply, context) => {
      const storage = context.storage()
      // One more than a page tells whether there is a next one, and `from` includes the name itself.
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
    summary: 'One queue with its policy and exact counts.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: Type.Object({ name: QueueName }),
      response: { 200: QueueView },
    },
    handler: async ({ params: { name } }, _reply, context) => {
      const storage = context.storage()
      const [queue, counts] = await Promise.all([storage.getQueue(name), storage.counts({ queue: name })])
      if (queue === null)
        throw new KnownError('QUEUE_NOT_FOUND', `there is no queue named ${JSON.stringify(name)}`)
      return viewQueue(queue, counts)
    },
  }),
]
