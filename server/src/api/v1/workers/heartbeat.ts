/** Heartbeats of workers over HTTP. */
import { type Static, Type } from 'typebox'
import { systemNamespace } from '../../../core/items/queue.ts'
import { type WorkerStatus, workerStatuses } from '../../../core/watching/worker.ts'
import { KnownError } from '../../../errors.ts'
import type { NewHeartbeat } from '../../../ops/watching/watching.ts'
import { type Caller, requirePermission } from '../../http/caller.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { parseInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { nullable } from '../values/schemas.ts'

const heartbeatsMax = 1_000
const errorsMax = 50

export const WorkerType = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\s:/]+$',
  description: 'The kind of worker, without white space, : and /.',
})
export const InstanceId = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^\\S+$',
  description: 'Tells the workers of a type apart, without white space.',
})

const timeText = (description: string) => Type.String({ maxLength: 64, description })
const HeartbeatSpec = component(
  'Heartbeat',
  Type.Object(
    {
      type: WorkerType,
      instance_id: InstanceId,
      namespace: Type.Optional(
        Type.String({ minLength: 1, maxLength: 256, description: 'The namespace. Default _system.' }),
      ),
      timestamp: Type.Optional(timeText('The time of the worker (RFC 3339), to correct a wrong clock.')),
      status: Type.Optional(
        Type.Enum(workerStatuses, { description: 'The status of the worker. Default RUNNING.' }),
      ),
      last_message_at: Type.Optional(
        nullable(
          timeText('A time (RFC 3339).'),
          'When the worker last processed a message; null: not yet. Omitted: the worker does not report it, and is never idle.',
        ),
      ),
      consumer_lag: Type.Optional(
        nullable(
          Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
          'Messages that wait for the worker; null: unknown.',
        ),
      ),
      retry_counts: Type.Optional(
        Type.Record(
          Type.String({ minLength: 1, maxLength: 200 }),
          Type.Integer({ minimum: 0, maximum: 1_000_000_000 }),
          { maxProperties: errorsMax, description: 'Failed attempts since the worker started, by error.' },
        ),
      ),
    },
    { additionalProperties: false },
  ),
)

export const heartbeatRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/workers/heartbeat',
    operationId: 'sendHeartbeats',
    errors: ['WORKERS_TOO_MANY', 'SERVER_OVERLOADED'],
    permission: 'worker.write',
    summary:
      'Takes heartbeats of workers, each with the newest state. A worker sends one every 10 s, SHUTTING_DOWN when it begins to stop, and STOPPED when it ends.',
    tag: 'workers',
    dialect: v1,
    isHot: true,
    schema: {
      body: Type.Object(
        {
          heartbeats: Type.Array(HeartbeatSpec, {
            minItems: 1,
            maxItems: heartbeatsMax,
            description: 'The heartbeats.',
          }),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({ recorded: Type.Integer({ description: 'The number of heartbeats.' }) }),
      },
    },
    handler: async ({ body, caller }, _reply, { watching }) => {
      const heartbeats = body.heartbeats.map((spec, position) => readHeartbeat(spec, position, caller))
      const { refused } = await watching.receive(heartbeats)
      const [first] = refused
      if (first !== undefined) {
        const { type = '', instanceId = '' } = heartbeats[first] ?? {}
        throw new KnownError(
          'WORKERS_TOO_MANY',
          `${refused.length} of ${heartbeats.length} workers are not watched, such as ${type}/${instanceId}: there are too many`,
        )
      }
      return { recorded: heartbeats.length }
    },
  }),
]

function readHeartbeat(spec: Static<typeof HeartbeatSpec>, position: number, caller: Caller): NewHeartbeat {
  const { type, instance_id: instanceId, namespace = systemNamespace, status = 'RUNNING' } = spec
  const { timestamp, last_message_at: last, consumer_lag: lag = null, retry_counts: retries } = spec
  requirePermission(caller, 'worker.write', namespace)
  const read = (field: string, text: string): number => {
    const at = parseInstant(text)
    if (at !== undefined) return at
    const path = `body.heartbeats[${position}].${field}`
    throw new InvalidRequest([{ field: path, message: 'must be an RFC 3339 time' }])
  }
  const lastMessageAt = last === undefined || last === null ? last : read('last_message_at', last)
  return {
    namespace,
    type,
    instanceId,
    status: status as WorkerStatus,
    sentAt: timestamp === undefined ? null : read('timestamp', timestamp),
    lag,
    ...(lastMessageAt !== undefined && { lastMessageAt }),
    ...(retries !== undefined && { retries }),
  }
}
