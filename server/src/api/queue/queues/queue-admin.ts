import { create } from '@bufbuild/protobuf'
import { formatDuration } from '../../../core/time/duration.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { QueueStats } from '../../../engine/engine.ts'
import { createAttribution } from '../../http/attribution.ts'
import { runInQueue } from '../checks/lookup.ts'
import {
  QueueClearRequestSchema,
  QueueReloadRequestSchema,
  QueueStatsRequestSchema,
  type QueueStatsResponse,
  QueueStatsResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'

const stats = queueRoute({
  path: '/v1/queue.stats',
  permission: 'queue.stats',
  summary: 'Returns the item counts of each partition and the number of waiting requests.',
  bodyBytesMax: bodyBytesMax.small,
  request: createCodec(QueueStatsRequestSchema),
  response: createCodec(QueueStatsResponseSchema),
  handle: async (message, { engine, context }) => {
    const { queueName } = message
    const found = await runInQueue(
      engine,
      message,
      () => {},
      () => engine.readStats(queueName),
    )
    return toStatsResponse(queueName, found, context.clock.now())
  },
})

const clear = queueRoute({
  path: '/v1/queue.clear',
  permission: 'queue.clear',
  summary:
    'Removes queued or scheduled items, and discards open dead letters. With destructive also leased items.',
  bodyBytesMax: bodyBytesMax.small,
  request: createCodec(QueueClearRequestSchema),
  handle: async (message, call) => {
    const { queueName, queue, scheduled, destructive } = message
    const check = () => {
      if (!queue && !scheduled)
        throw createBadRequest("invalid clear request; one of 'queue', 'scheduled' must be true")
    }
    const selection = {
      isWaiting: queue,
      isScheduled: scheduled,
      isLeased: queue && destructive,
      isForced: destructive,
    }
    await runInQueue(call.engine, message, check, () =>
      call.engine.clear(queueName, selection, createAttribution(call.request)),
    )
    return undefined
  },
})

const reload = queueRoute({
  path: '/v1/queue.reload',
  permission: 'queue.update',
  summary:
    'Reads the queue and its counts from the store again, so that changes by another server apply immediately.',
  bodyBytesMax: bodyBytesMax.small,
  request: createCodec(QueueReloadRequestSchema),
  handle: async (message, { engine }) => {
    await runInQueue(
      engine,
      message,
      () => {},
      () => engine.reload(message.queueName),
    )
    return undefined
  },
})

export const queueAdminRoutes = [stats, clear, reload]

export function toStatsResponse(queueName: string, found: QueueStats, now: Instant): QueueStatsResponse {
  const partitions = found.partitions
    .toSorted((one, other) => one.partition - other.partition)
    .map(({ partition, waiting, leased, scheduled, createdAtMean, leaseDeadlineMean }) => ({
      partition,
      total: clampToInt32(waiting + leased),
      totalLeased: clampToInt32(leased),
      averageAge: formatPositiveDuration(createdAtMean === null ? 0 : now - createdAtMean),
      averageLeasedAge: formatPositiveDuration(leaseDeadlineMean === null ? 0 : leaseDeadlineMean - now),
      scheduled: clampToInt32(scheduled),
    }))
  const { produceWaiting, leaseWaiting, completeWaiting, inFlight } = found
  return create(QueueStatsResponseSchema, {
    queueName,
    logicalQueues: [{ produceWaiting, leaseWaiting, completeWaiting, inFlight, partitions }],
  })
}

/** Means have millisecond precision and the clocks of servers differ, so the result is at least zero. */
function formatPositiveDuration(us: number): string {
  return formatDuration(Math.max(us, 0))
}

function clampToInt32(count: number): number {
  return Math.min(count, 2_147_483_647)
}
