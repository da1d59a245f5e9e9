import { create } from '@bufbuild/protobuf'
import { formatDuration } from '../../../core/duration.ts'
import type { Queue } from '../../../core/queue.ts'
import { type QueueInfo, QueueInfoSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { toTimestamp } from '../protocol/times.ts'

export function toQueueInfo(queue: Queue): QueueInfo {
  return create(QueueInfoSchema, {
    queueName: queue.name,
    createdAt: toTimestamp(queue.createdAt),
    updatedAt: toTimestamp(queue.updatedAt),
    deadQueue: queue.deadQueue ?? '',
    reference: queue.reference,
    leaseTimeout: formatDuration(queue.leaseUs),
    expireTimeout: formatDuration(queue.expireUs),
    maxAttempts: queue.attemptsMax,
    requestedPartitions: queue.partitions,
    namespace: queue.namespace,
  })
}
