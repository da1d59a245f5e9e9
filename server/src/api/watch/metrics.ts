import { Type } from 'typebox'
import { route } from '../http/route.ts'
import { v1 } from '../v1/dialect.ts'

export const metricsRoutes = [
  route({
    method: 'GET',
    path: '/metrics',
    operationId: 'getMetrics',
    permission: 'public',
    summary: 'Returns all metrics in the text format of Prometheus.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: Type.String() } } },
      },
    },
    handler: async (_request, reply, { metrics }) =>
      reply.type(metrics.contentType).send(await metrics.render()),
  }),
]
