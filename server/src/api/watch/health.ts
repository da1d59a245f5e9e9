import { type Static, Type } from 'typebox'
import { component } from '../http/openapi/annotations.ts'
import { route } from '../http/route.ts'
import { formatInstant } from '../http/wire/wire-time.ts'
import { v1 } from '../v1/dialect.ts'

const status = (description: string) => Type.Enum(['pass', 'warn', 'fail'], { description })
export const HealthBody = component(
  'Health',
  Type.Object({
    status: status('The worst result of the checks. warn: the server works, but an operator should act.'),
    version: Type.String({ description: 'Version of the server.' }),
    checks: Type.Record(
      Type.String(),
      Type.Array(
        Type.Object({
          componentType: Type.String({ description: 'Kind of the component, such as datastore.' }),
          status: status('Result of this check.'),
          time: Type.String({ format: 'date-time', description: 'When it was checked.' }),
          output: Type.Optional(Type.String({ description: 'Why the check does not pass.' })),
        }),
      ),
      { description: 'The checks by component.' },
    ),
  }),
)

const mediaType = 'application/health+json'
const healthAnswer = (description: string) => ({
  description,
  content: { [mediaType]: { schema: HealthBody } },
})

const componentState = (description: string) => Type.Enum(['ok', 'error', 'not_configured'], { description })
const ReadyBody = component(
  'Readiness',
  Type.Object({
    status: Type.Enum(['healthy', 'unhealthy'], { description: 'Whether requests can be served.' }),
    checks: Type.Object(
      { database: componentState('The store.'), kafka: componentState('Kafka.') },
      { description: 'The state of each component. /health reports the reason of an error.' },
    ),
    timestamp: Type.String({ format: 'date-time', description: 'The time of the answer.' }),
  }),
)

export const healthRoutes = [
  route({
    method: 'GET',
    path: '/health',
    operationId: 'getHealth',
    permission: 'public',
    summary: 'Reports whether the server works, with the reason if it does not.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: { 200: healthAnswer('No check fails.'), 503: healthAnswer('A check fails.') },
    },
    handler: (_request, reply, { health }) => {
      const now = health()
      return reply
        .code(now.status === 'fail' ? 503 : 200)
        .header('Cache-Control', 'no-store')
        .type(mediaType)
        .send(JSON.stringify(now))
    },
  }),
  route({
    method: 'GET',
    path: '/healthz',
    operationId: 'getLiveness',
    permission: 'public',
    summary: 'Reports that the process runs, independently of the store. For liveness probes.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: { response: { 200: Type.Object({ status: Type.Literal('ok', { description: 'Always ok.' }) }) } },
    handler: (_request, reply) => reply.header('Cache-Control', 'no-store').send({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    operationId: 'getReadiness',
    permission: 'public',
    summary: 'Reports whether requests can be served: the store answers. For readiness probes.',
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
    handler: (_request, reply, { health, clock, kafka }) => {
      const isReady = health().status !== 'fail'
      const body: Static<typeof ReadyBody> = {
        status: isReady ? 'healthy' : 'unhealthy',
        checks: { database: isReady ? 'ok' : 'error', kafka: describeKafka(kafka.health()) },
        timestamp: formatInstant(clock.now()),
      }
      return reply
        .code(isReady ? 200 : 503)
        .header('Cache-Control', 'no-store')
        .send(body)
    },
  }),
]

/** A cluster that cannot be used does not make the server unready: everything else works. */
function describeKafka(clusters: readonly Readonly<{ isUp: boolean }>[]): 'ok' | 'error' | 'not_configured' {
  if (clusters.length === 0) return 'not_configured'
  return clusters.every(({ isUp }) => isUp) ? 'ok' : 'error'
}
