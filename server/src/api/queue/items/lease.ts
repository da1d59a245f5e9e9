import { Type } from 'typebox'
import { withTrace } from '../../http/read-trace.ts'
import { runInQueue } from '../checks/lookup.ts'
import { checkNoNul, isBlank } from '../checks/names.ts'
import {
  checkTimeoutGiven,
  checkTimeoutMax,
  checkTimeoutMin,
  parseRequestTimeout,
  toMs,
} from '../checks/request-timeout.ts'
import { QueueLeaseRequestSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { type LeaseResponse, leaseResponse } from './lease-response.ts'

/** Own clients ask for the traces of items. The protocol has no field for them, so others do not get any. */
const itemTraceHeader = 'x-redrive-trace'
const itemTraceSpec = Type.Optional(
  Type.String({
    description:
      '1: items of a JSON answer have the additional fields traceparent and tracestate, if they have a trace.',
  }),
)

export const leaseRoute = queueRoute({
  path: '/v1/queue.lease',
  errors: ['LEASE_TIMEOUT', 'CLIENT_ID_BUSY'],
  permission: 'queue.lease',
  summary: 'Leases up to batch_size items of one partition, oldest first. Waits until an item is available.',
  bodyBytesMax: bodyBytesMax.small,
  isHot: true,
  slowMs: Number.POSITIVE_INFINITY,
  request: createCodec(QueueLeaseRequestSchema),
  response: leaseResponse,
  headers: Type.Object({ [itemTraceHeader]: itemTraceSpec }),
  handle: async (message, { engine, context, request, reply }): Promise<LeaseResponse> => {
    const { queueName, clientId, batchSize } = message
    let timeoutUs = 0
    const check = () => {
      timeoutUs = parseRequestTimeout(message.requestTimeout)
      if (isBlank(clientId)) throw createBadRequest('invalid client id; cannot be empty')
      checkNoNul('client id', clientId)
      checkBatchSize(batchSize, context.queueLimits.leaseItemsMax)
      checkTimeoutGiven(timeoutUs)
      checkTimeoutMax(timeoutUs, message.requestTimeout, true)
      checkTimeoutMin(timeoutUs, message.requestTimeout)
    }
    const { partition, items } = await runInQueue(engine, message, check, () =>
      context.leaseCalls.run(queueName, clientId, reply, (end) =>
        engine.lease(queueName, {
          clientId,
          countMax: batchSize,
          timeoutMs: toMs(timeoutUs),
          ...end,
          ...withTrace(request),
        }),
      ),
    )
    return { queueName, partition, items, hasTraces: request.headers[itemTraceHeader] === '1' }
  },
})

function checkBatchSize(batchSize: number, itemsMax: number): void {
  if (batchSize <= 0) throw createBadRequest('invalid batch size; must be greater than zero')
  if (batchSize > itemsMax) {
    throw createBadRequest(
      `invalid batch size; max_lease_batch_size is ${itemsMax}, but ${batchSize} was requested`,
    )
  }
}
