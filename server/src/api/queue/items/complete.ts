import { withTrace } from '../../http/read-trace.ts'
import { runInQueue } from '../checks/lookup.ts'
import { checkTimeoutGiven, checkTimeoutMax, parseRequestTimeout, toMs } from '../checks/request-timeout.ts'
import {
  type QueueCompleteRequest,
  QueueCompleteRequestSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { settleItems } from './settle.ts'

export const completeRoute = queueRoute({
  path: '/v1/queue.complete',
  errors: ['PARTITION_NOT_FOUND', 'ITEM_NOT_LEASED'],
  permission: 'queue.complete',
  summary: 'Completes leased items and removes them. If one of them cannot be completed, none is.',
  bodyBytesMax: bodyBytesMax.ids,
  isHot: true,
  slowMs: Number.POSITIVE_INFINITY,
  request: createCodec(QueueCompleteRequestSchema),
  handle: async (message, { engine, context, request }) => {
    const { queueName, partition, ids } = message
    let timeoutUs = 0
    const check = () => {
      timeoutUs = checkRequest(message, context.queueLimits.completeItemsMax)
    }
    await runInQueue(engine, message, check, () =>
      settleItems(engine, { queueName, partition, ids, verb: 'completed' }, () =>
        engine.complete(queueName, partition, ids, { timeoutMs: toMs(timeoutUs), ...withTrace(request) }),
      ),
    )
    return undefined
  },
})

function checkRequest({ requestTimeout, ids }: QueueCompleteRequest, itemsMax: number): number {
  const timeoutUs = parseRequestTimeout(requestTimeout)
  if (ids.length === 0) throw createBadRequest('ids is invalid; list of ids cannot be empty')
  if (ids.length > itemsMax) {
    throw createBadRequest(
      `ids is invalid; max_complete_batch_size is ${itemsMax} but received ${ids.length}`,
    )
  }
  checkTimeoutMax(timeoutUs, requestTimeout, true)
  // The contract has no minimum here; a negative timeout counts as none.
  checkTimeoutGiven(Math.max(timeoutUs, 0))
  return timeoutUs
}
