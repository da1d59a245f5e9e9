/**
 * Calls that the Queue API does not have: priorities, idempotent produce, extending and cancelling leases.
 */
import { Type } from 'typebox'
import { findKsuidProblem } from '../../../core/ids/ksuid.ts'
import { partitionsMax } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import { createQueueNotFoundError } from '../../../storage/shared/items/queue-checks.ts'
import { takeBody } from '../../http/bodies/body-reader.ts'
import { traceRequestHeaders, withTrace } from '../../http/read-trace.ts'
import { route } from '../../http/route.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { duration, parseDurationField } from '../values/duration.ts'
import { QueueParams, time } from '../values/schemas.ts'
import { itemsMax, QueueItemsBody, queueItemsBodyReader } from './queue-items-body.ts'

export const queueItemRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/items',
    operationId: 'produceItems',
    errors: [
      'QUEUE_NOT_FOUND',
      'IDEMPOTENCY_KEY_REUSED',
      'CALL_TIMEOUT',
      'QUEUE_OVERLOADED',
      'QUEUE_SHUTTING_DOWN',
    ],
    permission: 'queue.produce',
    summary: 'Produces items. With an idempotency key a repeated request is executed once.',
    tag: 'queues',
    dialect: v1,
    isHot: true,
    bodyReader: queueItemsBodyReader,
    openapi: { headers: Type.Object(traceRequestHeaders) },
    schema: {
      params: QueueParams,
      body: QueueItemsBody,
      response: {
        200: Type.Object({
          partition: Type.Integer({ description: 'The partition of the items.' }),
          ids: Type.Array(Type.String(), { description: 'Ids of the items, in the order of the request.' }),
          is_repeat: Type.Boolean({ description: 'An earlier request with the same key produced them.' }),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { items, once } = takeBody(request, queueItemsBodyReader)
      const options = { ...(once !== undefined && { once }), ...withTrace(request) }
      const { partition, ids, isRepeat } = await context.engine().produce(request.params.name, items, options)
      return { partition, ids: [...ids], is_repeat: isRepeat }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/leases/extend',
    operationId: 'extendLeases',
    errors: [
      'QUEUE_NOT_FOUND',
      'PARTITION_NOT_FOUND',
      'ITEM_ID_INVALID',
      'ITEM_NOT_FOUND',
      'ITEM_NOT_LEASED',
      'CALL_TIMEOUT',
      'QUEUE_OVERLOADED',
      'QUEUE_SHUTTING_DOWN',
    ],
    permission: 'queue.lease',
    summary: 'Extends leases, all or none. A worker calls it repeatedly during long work.',
    tag: 'queues',
    dialect: v1,
    isHot: true,
    schema: {
      params: QueueParams,
      body: Type.Object(
        {
          partition: Type.Integer({
            minimum: 0,
            maximum: partitionsMax - 1,
            description: 'The partition of the items.',
          }),
          ids: Type.Array(Type.String({ maxLength: 100 }), {
            minItems: 1,
            maxItems: itemsMax,
            description: 'Ids of leased items.',
          }),
          lease_timeout: Type.Optional(
            duration('How long the leases last from now on. Default: lease_timeout of the queue.'),
          ),
        },
        { additionalProperties: false },
      ),
      response: { 200: Type.Object({ lease_deadline: time('When the leases end.') }) },
    },
    handler: async ({ params: { name }, body: { partition, ids, lease_timeout } }, _reply, context) => {
      checkIds(ids)
      const leaseTimeoutUs =
        lease_timeout === undefined ? undefined : parseDurationField('lease_timeout', lease_timeout, 1)
      return {
        lease_deadline: formatInstant(await context.engine().extend(name, partition, ids, leaseTimeoutUs)),
      }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/leases/cancel',
    operationId: 'cancelLease',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'queue.lease',
    summary:
      'Cancels the waiting lease call of a client. The call is answered now, possibly with items that it just got.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: QueueParams,
      body: Type.Object(
        { client_id: Type.String({ minLength: 1, description: 'client_id of the lease call.' }) },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          is_cancelled: Type.Boolean({
            description: 'False if no lease call of this client waits at this server.',
          }),
        }),
      },
    },
    handler: async ({ params: { name }, body: { client_id } }, _reply, context) => {
      const isCancelled = context.leaseCalls.cancel(name, client_id)
      if (!isCancelled && (await context.engine().getQueue(name)) === null)
        throw createQueueNotFoundError(name)
      return { is_cancelled: isCancelled }
    },
  }),
]

/** Malformed ids are refused before the store is asked. */
function checkIds(ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    if (findKsuidProblem(id) === undefined) continue
    throw new KnownError('ITEM_ID_INVALID', `ids[${index}]: ${JSON.stringify(id)} is not an item id`)
  }
}
