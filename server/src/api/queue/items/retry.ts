import { settleItems } from '../checks/item-ids.ts'
import { runInQueue } from '../checks/lookup.ts'
import { type QueueRetryItem, QueueRetryRequestSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../protocol/body-limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { badRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toInstant } from '../protocol/times.ts'
import { scheduledFromUs } from './produce.ts'
import { type ReportedError, readReportedError, reportedErrorHeader } from './reported-error.ts'
import { translateStoreErrors } from './try-again.ts'

export const retryRoute = queueRoute({
  path: '/v1/queue.retry',
  permission: 'queue.retry',
  summary:
    'Gives leased items back: to the tail, for later, or as dead, which they are too once their attempts ' +
    'exceed max_attempts. X-Redrive-Error may say what went wrong.',
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
      const given = items.map((item) => ({
        id: item.id,
        isDead: item.dead,
        error,
        availableAt: availableAt(item, from),
      }))
      return translateStoreErrors(() =>
        settleItems(engine, message, ids, 'retried', () => engine.retry(queueName, partition, given)),
      )
    })
    return undefined
  },
})

function checkItems(items: readonly QueueRetryItem[], itemsMax: number): void {
  if (items.length === 0) throw badRequest('items is invalid; list of items cannot be empty')
  if (items.length > itemsMax) {
    throw badRequest(`items is invalid; max_complete_batch_size is ${itemsMax} but received ${items.length}`)
  }
}

/** Without a time of its own the queue's retry policy decides, which is at once unless somebody set another. */
function availableAt({ retryAt }: QueueRetryItem, from: number): number | null | undefined {
  const at = toInstant(retryAt)
  if (at === null) return undefined
  return at > from ? at : null
}
