import { type Static, Type } from 'typebox'
import { formatDuration } from '../../../core/duration.ts'
import type { Queue } from '../../../core/queue.ts'
import type { RetryPolicy } from '../../../core/retry.ts'
import type { PartitionCounts } from '../../../storage/contract/counts.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { attemptsMaxMeans } from './queue-spec.ts'

const Duration = Type.String({ description: 'Such as 300ms, 1m0s or 24h0m0s.', examples: ['1m0s'] })

const RetryView = Type.Object({
  kind: Type.Enum(['fixed', 'list', 'exponential']),
  delays: Type.Array(Duration, {
    description: 'fixed: the one delay; list: one per attempt; exponential: the first and the longest.',
  }),
  jitter: Type.Number({ description: '0.2 spreads each delay by 20 % to both sides.' }),
})

const CountsView = Type.Object(
  {
    waiting: Type.Integer(),
    scheduled: Type.Integer(),
    leased: Type.Integer(),
    done: Type.Integer(),
    dead: Type.Integer(),
    discarded: Type.Integer(),
    accepted: Type.Integer(),
    completed: Type.Integer(),
    dead_lettered: Type.Integer(),
    dropped: Type.Integer(),
    deleted: Type.Integer(),
    forgotten: Type.Integer(),
    archived: Type.Integer(),
    purged: Type.Integer(),
  },
  {
    description:
      'Exact. The first six are items that are there now, archived those in the archive now; the others only grow, and accepted is the sum of all the rest.',
  },
)

export const QueueView = Type.Object({
  name: Type.String(),
  namespace: Type.String(),
  partitions: Type.Integer(),
  is_paused: Type.Boolean(),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
  policy: Type.Object({
    lease: Duration,
    expire: Duration,
    attempts_max: Type.Integer({ description: attemptsMaxMeans }),
    dead_queue: Type.Union([Type.String(), Type.Null()]),
    on_dead: Type.Enum(['delete', 'keep']),
    retry: RetryView,
    keep_done: Duration,
    letter_class: Type.String(),
    redrive: Type.Object({
      mode: Type.Enum(['manual', 'auto']),
      redrives_max: Type.Integer(),
      backoff: RetryView,
    }),
    reference: Type.String(),
  }),
  counts: CountsView,
})

export type QueueView = Static<typeof QueueView>

/** A queue as our API shows it. `counts` may hold other queues' as well. */
export function viewQueue(queue: Queue, counts: readonly PartitionCounts[]): QueueView {
  return {
    name: queue.name,
    namespace: queue.namespace,
    partitions: queue.partitions,
    is_paused: queue.isPaused,
    created_at: formatInstant(queue.createdAt),
    updated_at: formatInstant(queue.updatedAt),
    policy: {
      lease: formatDuration(queue.leaseUs),
      expire: formatDuration(queue.expireUs),
      attempts_max: queue.attemptsMax,
      dead_queue: queue.deadQueue,
      on_dead: queue.onDead,
      retry: viewRetry(queue.retry),
      keep_done: formatDuration(queue.keepDoneUs),
      letter_class: queue.letterClass,
      redrive: {
        mode: queue.redrive.mode,
        redrives_max: queue.redrive.redrivesMax,
        backoff: viewRetry(queue.redrive.backoff),
      },
      reference: queue.reference,
    },
    counts: sumCounts(counts.filter((partition) => partition.queue === queue.name)),
  }
}

export function viewRetry(policy: RetryPolicy): Static<typeof RetryView> {
  return { kind: policy.kind, delays: delaysUs(policy).map(formatDuration), jitter: policy.jitter }
}

function delaysUs(policy: RetryPolicy): readonly number[] {
  switch (policy.kind) {
    case 'fixed':
      return [policy.delayUs]
    case 'list':
      return policy.delaysUs
    case 'exponential':
      return [policy.delayUsMin, policy.delayUsMax]
  }
}

function sumCounts(partitions: readonly PartitionCounts[]): Static<typeof CountsView> {
  const sum = (read: (partition: PartitionCounts) => number): number =>
    partitions.reduce((total, partition) => total + read(partition), 0)
  return {
    waiting: sum((partition) => partition.waiting),
    scheduled: sum((partition) => partition.scheduled),
    leased: sum((partition) => partition.leased),
    done: sum((partition) => partition.done),
    dead: sum((partition) => partition.dead),
    discarded: sum((partition) => partition.discarded),
    accepted: sum((partition) => partition.accepted),
    completed: sum((partition) => partition.completed),
    dead_lettered: sum((partition) => partition.deadLettered),
    dropped: sum((partition) => partition.dropped),
    deleted: sum((partition) => partition.deleted),
    forgotten: sum((partition) => partition.forgotten),
    archived: sum((partition) => partition.archived),
    purged: sum((partition) => partition.purged),
  }
}
