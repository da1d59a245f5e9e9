/** Create, change, pause, resume and delete queues. Each call writes an audit row. */

import { Type } from 'typebox'
import { boundedPolicy, type PolicyChanges, partitionsMax } from '../../../core/items/queue.ts'
import type { Attribution, Engine } from '../../../engine/engine.ts'
import { checkTimes } from '../../../storage/shared/items/queue-checks.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { Reason } from '../values/reason.ts'
import { QueueParams } from '../values/schemas.ts'
import { PolicySpec, readPolicy } from './queue-spec.ts'
import { NewQueueView, QueueView, viewQueue } from './queue-view.ts'
import { warnAboutNewQueue } from './queue-warnings.ts'

const NewQueueName = Type.String({
  minLength: 1,
  maxLength: 512,
  pattern: '^[^\\s~]+$',
  description: 'Name of the queue, without white space and without ~.',
})

export const queueAdminRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/queues',
    operationId: 'createQueue',
    errors: ['QUEUE_EXISTS', 'DEAD_QUEUE_INVALID', 'LEASE_TOO_LONG'],
    permission: 'queue.create',
    summary:
      'Creates a queue. Omitted fields have their default; by default an item has 10 attempts, with growing delays.',
    tag: 'queues',
    dialect: v1,
    schema: {
      body: Type.Object(
        {
          name: NewQueueName,
          partitions: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: partitionsMax,
              description: 'Number of partitions, which cannot change later. Default 1.',
            }),
          ),
          namespace: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 256,
              description: 'The namespace of the queue, which cannot change later. Default _system.',
            }),
          ),
          policy: Type.Optional(PolicySpec),
          is_paused: Type.Optional(Type.Boolean({ description: 'Create the queue paused. Default false.' })),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: NewQueueView },
    },
    handler: async (request, _reply, context) => {
      const { name, namespace, partitions, policy = {}, is_paused, reason } = request.body
      const spec = readPolicy(policy)
      checkTimes({ ...boundedPolicy, ...spec })
      const { attemptsMax, retry } = boundedPolicy
      const queue = {
        attemptsMax,
        retry,
        ...spec,
        name,
        ...(namespace !== undefined && { namespace }),
        ...(partitions !== undefined && { partitions }),
        ...(is_paused !== undefined && { isPaused: is_paused }),
      }
      const created = await context.engine().createQueue(queue, createAttribution(request, reason))
      return { ...viewQueue(created, []), warnings: [...warnAboutNewQueue(created)] }
    },
  }),

  route({
    method: 'PATCH',
    path: '/api/v1/queues/{name}',
    operationId: 'updateQueue',
    errors: ['QUEUE_NOT_FOUND', 'DEAD_QUEUE_INVALID', 'LEASE_TOO_LONG', 'QUEUE_SHUTTING_DOWN'],
    permission: 'queue.update',
    summary: 'Changes the given fields of a policy. The change applies immediately, also to stored items.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: QueueParams,
      body: Type.Object({ policy: PolicySpec, reason: Reason }, { additionalProperties: false }),
      response: { 200: QueueView },
    },
    handler: async (request, _reply, context) => {
      const { policy, reason } = request.body
      return update(
        context.engine(),
        request.params.name,
        readPolicy(policy),
        createAttribution(request, reason),
      )
    },
  }),

  ...(['pause', 'resume'] as const).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/queues/{name}/${action}`,
      operationId: `${action}Queue`,
      errors: ['QUEUE_NOT_FOUND', 'QUEUE_SHUTTING_DOWN'],
      permission: 'queue.update',
      summary:
        action === 'pause'
          ? 'Pauses a queue: it leases no items until it is resumed. Existing leases continue.'
          : 'Resumes a paused queue and serves waiting lease calls immediately.',
      tag: 'queues',
      dialect: v1,
      isBodyOptional: true,
      schema: {
        params: QueueParams,
        body: Type.Object({ reason: Reason }, { additionalProperties: false }),
        response: { 200: QueueView },
      },
      handler: async (request, _reply, context) => {
        const changes = { isPaused: action === 'pause' }
        return update(
          context.engine(),
          request.params.name,
          changes,
          createAttribution(request, request.body.reason),
        )
      },
    }),
  ),

  route({
    method: 'DELETE',
    path: '/api/v1/queues/{name}',
    operationId: 'deleteQueue',
    errors: ['QUEUE_NOT_FOUND', 'QUEUE_IN_USE', 'QUEUE_HOLDS_LETTERS'],
    permission: 'queue.delete',
    summary:
      'Deletes a queue and all its items permanently. A queue with open dead letters is deleted only with force.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: QueueParams,
      querystring: Type.Object(
        {
          force: Type.Boolean({
            default: false,
            description: 'Also deletes a queue with open dead letters, which are lost.',
          }),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: Type.Object({ name: Type.String({ description: 'Name of the deleted queue.' }) }) },
    },
    handler: async (request, _reply, context) => {
      const { name } = request.params
      const { reason, force } = request.query
      await context.engine().deleteQueue(name, createAttribution(request, reason), { isForced: force })
      return { name }
    },
  }),
]

async function update(
  engine: Engine,
  name: string,
  changes: PolicyChanges,
  attribution: Attribution,
): Promise<QueueView> {
  const updated = await engine.updateQueue(name, changes, attribution)
  return viewQueue(updated, (await engine.readStats(name)).partitions)
}
