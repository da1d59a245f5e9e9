/** Health in the form of Spring Boot's actuator, with the states UP, DEGRADED and DOWN. */
import { type Static, Type } from 'typebox'
import { systemNamespace } from '../../core/items/queue.ts'
import { actuatorStatuses } from '../../ops/health/actuator-health.ts'
import { component } from '../http/openapi/annotations.ts'
import { route } from '../http/route.ts'
import { v1 } from '../v1/dialect.ts'

const status = (description: string) => Type.Enum(actuatorStatuses, { description })
const details = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Null()]), {
  description: 'Figures of the component, and the reason if it does not work.',
})
const ActuatorPart = Type.Object({
  status: status('The state of this part.'),
  details: Type.Optional(details),
})
const ActuatorBody = component(
  'ActuatorHealth',
  Type.Object({
    status: status('DOWN: the store does not answer. DEGRADED: the server works, but a person should look.'),
    components: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Object({
          status: status('The state of this component.'),
          details: Type.Optional(details),
          components: Type.Optional(
            Type.Record(Type.String(), ActuatorPart, {
              description: 'The Kafka clusters, or the consumer groups.',
            }),
          ),
        }),
        { description: 'The components. Only for callers with the permission system.health in _system.' },
      ),
    ),
  }),
)

const ProbeBody = component(
  'Probe',
  Type.Object({ status: Type.Enum(['UP', 'DOWN'], { description: 'The result of the probe.' }) }),
)

const answer = (description: string, schema: typeof ActuatorBody | typeof ProbeBody) => ({
  description,
  content: { 'application/json': { schema } },
})

export const actuatorRoutes = [
  route({
    method: 'GET',
    path: '/actuator/health',
    operationId: 'getActuatorHealth',
    permission: 'public',
    isCallerOptional: true,
    summary: 'Reports the state of the server and of everything that it watches.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: {
        200: answer('The server works.', ActuatorBody),
        503: answer('The server is DOWN.', ActuatorBody),
      },
    },
    handler: ({ caller }, reply, { readActuator }) => {
      const found = readActuator()
      const isAuthorised = caller.may('system.health', systemNamespace)
      const body: Static<typeof ActuatorBody> = isAuthorised ? found : { status: found.status }
      return reply
        .code(found.status === 'DOWN' ? 503 : 200)
        .header('Cache-Control', 'no-store')
        .type('application/json')
        .send(JSON.stringify(body))
    },
  }),
  route({
    method: 'GET',
    path: '/actuator/health/liveness',
    operationId: 'getActuatorLiveness',
    permission: 'public',
    summary: 'Reports that the process runs, independently of the store. For liveness probes.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: { response: { 200: ProbeBody } },
    handler: (_request, reply) => reply.header('Cache-Control', 'no-store').send({ status: 'UP' }),
  }),
  route({
    method: 'GET',
    path: '/actuator/health/readiness',
    operationId: 'getActuatorReadiness',
    permission: 'public',
    summary: 'Reports whether requests can be served: the store answers. For readiness probes.',
    tag: 'watching',
    dialect: v1,
    isHot: true,
    schema: {
      response: { 200: ProbeBody, 503: answer('The store does not answer.', ProbeBody) },
    },
    handler: (_request, reply, { health }) => {
      const isReady = health().status !== 'fail'
      return reply
        .code(isReady ? 200 : 503)
        .header('Cache-Control', 'no-store')
        .send({ status: isReady ? 'UP' : 'DOWN' })
    },
  }),
]
