/** What a person does to a queue: make it, change it, stop and restart it, delete it. Each is audited. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { defaultPolicy, type PolicyChanges, partitionsMax } from '../../../core/queue.ts'
import type { Engine, Trace } from '../../../engine/engine.ts'
import { checkTimes } from '../../../storage/shared/queue-checks.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { PolicySpec, policyOf } from './queue-spec.ts'
import { QueueView, viewQueue } from './queue-view.ts'

const QueueName = Type.String({
  minLength: 1,
  maxLength: 512,
  pattern: '^[^\\s~]+$',
  description: 'Without white space and without ~.',
})
const params = Type.Object({ name: Type.String({ minLength: 1, maxLength: 512 }) })
const Reason = Type.Optional(Type.String({ maxLength: 1_000, description: 'Why; kept in the audit log.' }))

export const queueAdminRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/queues',
    permission: 'queue.create',
    summary: 'Makes a queue. What is left out has its default.',
    tag: 'queues',
    dialect: v1,
    schema: {
      body: Type.Object(
        {
          name: QueueName,
          partitions: Type.Optional(Type.Integer({ minimum: 1, maximum: partitionsMax })),
          policy: Type.Optional(PolicySpec),
          is_paused: Type.Optional(Type.Boolean()),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: QueueView },
    },
    handler: async (request, _reply, context) => {
      const { name, partitions, policy = {}, is_paused, reason } = request.body
      const spec = policyOf(policy)
      checkTimes({ ...defaultPolicy, ...spec })
      const made = {
        ...spec,
        name,
        ...(partitions !== undefined && { partitions }),
        ...(is_paused !== undefined && { isPaused: is_paused }),
      }
      return viewQueue(await context.engine().createQueue(made, createTrace(request, reason)), [])
    },
  }),

  route({
    method: 'PATCH',
    path: '/api/v1/queues/{name}',
    permission: 'queue.update',
    summary: 'Changes what is named, at once, also for items already there.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params,
      body: Type.Object({ policy: PolicySpec, reason: Reason }, { additionalProperties: false }),
      response: { 200: QueueView },
    },
    handler: async (request, _reply, context) => {
      const { policy, reason } = request.body
      return update(context.engine(), request.params.name, policyOf(policy), createTrace(request, reason))
    },
  }),

  ...(['pause', 'resume'] as const).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/queues/{name}/${action}`,
      permission: 'queue.update',
      summary:
        action === 'pause'
          ? 'Gives out no more items until resumed. Leases that are out go on.'
          : 'Gives out items again; leases that wait are served at once.',
      tag: 'queues',
      dialect: v1,
      isBodyOptional: true,
      schema: {
        params,
        body: Type.Object({ reason: Reason }, { additionalProperties: false }),
        response: { 200: QueueView },
      },
      handler: async (request, _reply, context) => {
        const changes = { isPaused: action === 'pause' }
        return update(
          context.engine(),
          request.params.name,
          changes,
          createTrace(request, request.body.reason),
        )
      },
    }),
  ),

  route({
    method: 'DELETE',
    path: '/api/v1/queues/{name}',
    permission: 'queue.delete',
    summary: 'Deletes a queue and all its items, for good.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params,
      querystring: Type.Object(
        {
          force: Type.Boolean({
            default: false,
            description: 'Also a dead queue of class financial that has open letters. They are erased.',
          }),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: Type.Object({ name: Type.String() }) },
    },
    handler: async (request, _reply, context) => {
      const { name } = request.params
      const { reason, force } = request.query
      await context.engine().deleteQueue(name, createTrace(request, reason), { isForced: force })
      return { name }
    },
  }),
]

async function update(
  engine: Engine,
  name: string,
  changes: PolicyChanges,
  trace: Trace,
): Promise<QueueView> {
  const updated = await engine.updateQueue(name, changes, trace)
  return viewQueue(updated, (await engine.stats(name)).partitions)
}

export function createTrace(request: FastifyRequest, reason: string | undefined): Trace {
  return { actor: request.caller.name, reason: reason ?? '', requestId: request.id }
}
