import { create } from '@bufbuild/protobuf'
import { formatDuration } from '../../../core/duration.ts'
import type { Instant } from '../../../core/instant.ts'
import type { QueueStats } from '../../../engine/engine.ts'
import { runInQueue } from '../checks/lookup.ts'
import {
  QueueClearRequestSchema,
  QueueReloadRequestSchema,
  QueueStatsRequestSchema,
  type QueueStatsResponse,
  QueueStatsResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../protocol/body-limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { badRequest } from '../protocol/fault.ts'
import { queueRoute, createTrace } from '../protocol/queue-route.ts'

const stats = queueRoute({
  path: '/v1/queue.stats',
  permission: 'queue.stats',
  summary: 'What is in a queue, by partition, and what waits for it.',
  bodyBytesMax: bodyBytesMax.small,
  request: createCodec(QueueStatsRequestSchema),
  response: createCodec(QueueStatsResponseSchema),
  handle: async (message, { engine, context }) => {
    const { queueName } = message
    const found = await runInQueue(
      engine,
      message,
      () => {},
      () => engine.stats(queueName),
    )
    return toStatsResponse(queueName, found, context.clock.now())
  },
})

const clear = queueRoute({
  path: '/v1/queue.clear',
  permission: 'queue.clear',
  summary:
    'Removes queued items, scheduled items, and with destructive also leased ones and letters of class financial.',
  bodyBytesMax: bodyBytesMax.small,
  request: createCodec(QueueClearRequestSchema),
  handle: async (message, call) => {
    const { queueName, queue, scheduled, destructive } = message
    const check = () => {
      if (!queue && !scheduled)
        throw badRequest("invalid clear request; one of 'queue', 'scheduled' must be true")
    }
    const what = {
      isWaiting: queue,
      isScheduled: scheduled,
      isLeased: queue && destructive,
      isForced: destructive,
    }
    await runInQueue(call.engine, message, check, () => call.engine.clear(queueName, what, createTrace(call)))
    return undefined
  },
})

const reload = queueRoute({
  path: '/v1/queue.reload',
  permission: 'queue.update',
  summary:
    'Reads the queue and its counts anew from the store: what another server changed holds here at once.',
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
      total: int32(waiting + leased),
      totalLeased: int32(leased),
      averageAge: durationText(createdAtMean === null ? 0 : now - createdAtMean),
      averageLeasedAge: durationText(leaseDeadlineMean === null ? 0 : leaseDeadlineMean - now),
      scheduled: int32(scheduled),
    }))
  const { produceWaiting, leaseWaiting, completeWaiting, inFlight } = found
  return create(QueueStatsResponseSchema, {
    queueName,
    logicalQueues: [{ produceWaiting, leaseWaiting, completeWaiting, inFlight, partitions }],
  })
}

/** Means are exact to the millisecond, and clocks of several servers differ: never below zero. */
function durationText(us: number): string {
  return formatDuration(Math.max(us, 0))
}

function int32(count: number): number {
  return Math.min(count, 2_147_483_647)
}
