import { settle } from '../checks/item-ids.ts'
import { inQueue } from '../checks/lookup.ts'
import { type QueueRetryItem, QueueRetryRequestSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../protocol/body-limits.ts'
import { codecOf } from '../protocol/codec.ts'
import { invalid } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { instantOf } from '../protocol/times.ts'
import { scheduledFromUs } from './produce.ts'
import { type ReportedError, readReportedError, reportedErrorHeader } from './reported-error.ts'
import { orTryAgain } from './try-again.ts'

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
  request: codecOf(QueueRetryRequestSchema),
  handle: async (message, { engine, context, request }) => {
    const { queueName, partition, items } = message
    let error: ReportedError | null = null
    const check = () => {
      checkItems(items, context.queueLimits.completeItemsMax)
      error = readReportedError(request.headers['x-redrive-error'])
    }
    await inQueue(engine, message, check, () => {
      const from = context.clock.now() + scheduledFromUs
      const ids = items.map(({ id }) => id)
      const given = items.map((item) => ({
        id: item.id,
        isDead: item.dead,
        error,
        availableAt: availableAt(item, from),
      }))
      return orTryAgain(() =>
        settle(engine, message, ids, 'retried', () => engine.retry(queueName, partition, given)),
      )
    })
    return undefined
  },
})

function checkItems(items: readonly QueueRetryItem[], itemsMax: number): void {
  if (items.length === 0) throw invalid('items is invalid; list of items cannot be empty')
  if (items.length > itemsMax) {
    throw invalid(`items is invalid; max_complete_batch_size is ${itemsMax} but received ${items.length}`)
  }
}

/** Without a time of its own the queue's retry policy decides, which is at once unless somebody set another. */
function availableAt({ retryAt }: QueueRetryItem, from: number): number | null | undefined {
  const at = instantOf(retryAt)
  if (at === null) return undefined
  return at > from ? at : null
}
