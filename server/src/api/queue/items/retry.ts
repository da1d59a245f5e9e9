import { withTrace } from '../../http/read-trace.ts'
import { runInQueue } from '../checks/lookup.ts'
import { type QueueRetryItem, QueueRetryRequestSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toInstant } from '../protocol/times.ts'
import { scheduledFromUs } from './produce.ts'
import { type ReportedError, readReportedError, reportedErrorHeader } from './reported-error.ts'
import { settleItems } from './settle.ts'

export const retryRoute = queueRoute({
  path: '/v1/queue.retry',
  errors: ['PARTITION_NOT_FOUND', 'ITEM_NOT_LEASED'],
  permission: 'queue.retry',
  summary:
    'Returns leased items to their queue: to the tail, at a later time, or as dead. An item whose attempts ' +
    'exceed max_attempts is dead in any case. The header X-Redrive-Error can report the failure.',
  bodyBytesMax: bodyBytesMax.ids,
  isHot: true,
  slowMs: Number.POSITIVE_INFINITY,
  headers: reportedErrorHeader,
  request: createCodec(QueueRetryRequestSchema),
  handle: async (message, { engine, context, request }) => {
    const { queueName, partition, items } = message
    let error: ReportedError | null = null
    const check = () => {
      checkItems(items, context.queueLimits.completeItemsMax)
      error = readReportedError(request.headers['x-redrive-error'])
    }
    await runInQueue(engine, message, check, () => {
      const from = context.clock.now() + scheduledFromUs
      const ids = items.map(({ id }) => id)
      const requests = items.map((item) => ({
        id: item.id,
        isDead: item.dead,
        error,
        availableAt: readRetryTime(item, from),
      }))
      return settleItems(engine, { queueName, partition, ids, verb: 'retried' }, () =>
        engine.retry(queueName, partition, requests, withTrace(request)),
      )
    })
    return undefined
  },
})

function checkItems(items: readonly QueueRetryItem[], itemsMax: number): void {
  if (items.length === 0) throw createBadRequest('items is invalid; list of items cannot be empty')
  if (items.length > itemsMax) {
    throw createBadRequest(
      `items is invalid; max_complete_batch_size is ${itemsMax} but received ${items.length}`,
    )
  }
}

/**
 * Undefined without `retry_at`: the queue's retry policy decides, which by default retries immediately. Null
 * for a time before `from`: the item is available immediately.
 */
function readRetryTime({ retryAt }: QueueRetryItem, from: number): number | null | undefined {
  const at = toInstant(retryAt)
  if (at === null) return undefined
  return at > from ? at : null
}
