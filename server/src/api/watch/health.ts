import { type Static, Type } from 'typebox'
import { route } from '../http/route.ts'
import { formatInstant } from '../http/wire/wire-time.ts'
import { v1 } from '../v1/dialect.ts'

const Status = Type.Enum(['pass', 'fail'])
export const HealthBody = Type.Object({
  status: Status,
  version: Type.String(),
  checks: Type.Record(
    Type.String(),
    Type.Array(
      Type.Object({
        componentType: Type.String(),
        status: Status,
        time: Type.String({ format: 'date-time' }),
        output: Type.Optional(Type.String({ description: 'Why it fails.' })),
      }),
    ),
  ),
})

const mediaType = 'application/health+json'
const healthAnswer = (description: string) => ({
  description,
  content: { [mediaType]: { schema: HealthBody } },
})

const Ready = Type.Enum(['ok', 'error', 'not_configured'])
const ReadyBody = Type.Object({
  status: Type.Enum(['healthy', 'unhealthy']),
  checks: Type.Object({ database: Ready, kafka: Ready }, { description: '/health says why.' }),
  timestamp: Type.String({ format: 'date-time' }),
})

export const healthRoutes = [
  route({
    method: 'GET',
    path: '/health',
    permission: 'public',
    summary: 'Whether the server can do its work, and if not, why.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: { 200: healthAnswer('All is well.'), 503: healthAnswer('Something the server needs fails.') },
    },
    handler: (_request, reply, { health }) => {
      const now = health()
      return reply
        .code(now.status === 'pass' ? 200 : 503)
        .header('Cache-Control', 'no-store')
        .type(mediaType)
        .send(JSON.stringify(now))
    },
  }),
  route({
    method: 'GET',
    path: '/healthz',
    permission: 'public',
    summary: 'Whether the process lives: it answers, whatever becomes of the store.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: { response: { 200: Type.Object({ status: Type.Literal('ok') }) } },
    handler: (_request, reply) => reply.header('Cache-Control', 'no-store').send({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    permission: 'public',
    summary: 'Whether requests can be served: the store answers.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: {
        200: ReadyBody,
        503: {
          description: 'The store does not answer.',
          content: { 'application/json': { schema: ReadyBody } },
        },
      },
    },
    handler: (_request, reply, { health, clock }) => {
      const isReady = health().status === 'pass'
      const body: Static<typeof ReadyBody> = {
        status: isReady ? 'healthy' : 'unhealthy',
        checks: { database: isReady ? 'ok' : 'error', kafka: 'not_configured' },
        timestamp: formatInstant(clock.now()),
      }
      return reply
        .code(isReady ? 200 : 503)
        .header('Cache-Control', 'no-store')
        .send(body)
    },
  }),
]
