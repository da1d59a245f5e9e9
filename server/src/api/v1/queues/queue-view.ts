/** A queue in answers. */
import { type Static, Type } from 'typebox'
import type { Queue } from '../../../core/items/queue.ts'
import type { RetryPolicy } from '../../../core/items/retry.ts'
import { formatDuration } from '../../../core/time/duration.ts'
import type { Counts } from '../../../storage/contract/counts.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { durationView } from '../values/duration.ts'
import { nullable, time } from '../values/schemas.ts'
import { policyTexts } from './queue-spec.ts'

const retryView = (description: string) =>
  component(
    'RetryPolicy',
    Type.Object(
      {
        kind: Type.Enum(['fixed', 'list', 'exponential'], { description: 'How the delays grow.' }),
        delays: Type.Array(durationView('A delay.'), { description: policyTexts.delays }),
        jitter: Type.Number({ description: policyTexts.jitter }),
      },
      { description },
    ),
  )
type RetryView = Static<ReturnType<typeof retryView>>

const count = (description: string) => Type.Integer({ description })

const CountsView = component(
  'QueueCounts',
  Type.Object(
    {
      waiting: count('Items that are available now.'),
      scheduled: count('Items that become available later.'),
      leased: count('Items that a worker has leased.'),
      done: count('Completed items that are kept.'),
      dead: count('Dead items and letters without redrives left.'),
      discarded: count('Discarded letters that are kept.'),
      accepted: count('All items that ever entered the queue; the sum of all other counts.'),
      completed: count('Items that were completed and removed.'),
      dead_lettered: count('Items that died and moved to the dead queue, or returned to their letter.'),
      dropped: count('Items that died without a dead queue and were deleted.'),
      deleted: count('Items that a request deleted.'),
      forgotten: count('Completed items whose retention ended.'),
      archived: count('Letters in the archive now.'),
      purged: count('Letters that were removed from the archive.'),
    },
    {
      description:
        'Exact counts. waiting to discarded, and archived, count what exists now; the other counts only grow.',
    },
  ),
)

const queueFields = {
  name: Type.String({ description: 'Name of the queue.' }),
  namespace: Type.String({ description: 'Namespace of the queue.' }),
  partitions: Type.Integer({ description: 'Number of partitions.' }),
  is_paused: Type.Boolean({ description: 'Whether the queue leases no items.' }),
  created_at: time('When the queue was created.'),
  updated_at: time('When the queue last changed.'),
  policy: Type.Object(
    {
      lease_timeout: durationView(policyTexts.lease_timeout),
      expire_timeout: durationView(policyTexts.expire_timeout),
      attempts_max: Type.Integer({ description: policyTexts.attempts_max }),
      dead_queue: nullable(Type.String(), policyTexts.dead_queue),
      on_dead: Type.Enum(['delete', 'keep'], { description: policyTexts.on_dead }),
      retry: retryView(policyTexts.retry),
      done_retention: durationView(policyTexts.done_retention),
      letter_class: Type.String({ description: policyTexts.letter_class }),
      redrive: Type.Object(
        {
          mode: Type.Enum(['manual', 'auto'], { description: 'auto: letters are redriven automatically.' }),
          redrives_max: Type.Integer({ description: policyTexts.redrives_max }),
          backoff: retryView(policyTexts.backoff),
        },
        { description: policyTexts.redrive },
      ),
      reference: Type.String({ description: policyTexts.reference }),
    },
    { description: 'The rules of the queue.' },
  ),
  counts: CountsView,
}

export const QueueView = component('Queue', Type.Object(queueFields))
export type QueueView = Static<typeof QueueView>

export const NewQueueView = Type.Object({
  ...queueFields,
  warnings: Type.Array(Type.String(), {
    description: 'Consequences of the policy, such as what happens to items that fail; empty: none.',
  }),
})

/** `counts`: of the queue or of each of its partitions. */
export function viewQueue(queue: Queue, counts: readonly Counts[]): QueueView {
  return {
    name: queue.name,
    namespace: queue.namespace,
    partitions: queue.partitions,
    is_paused: queue.isPaused,
    created_at: formatInstant(queue.createdAt),
    updated_at: formatInstant(queue.updatedAt),
    policy: {
      lease_timeout: formatDuration(queue.leaseTimeoutUs),
      expire_timeout: formatDuration(queue.expireTimeoutUs),
      attempts_max: queue.attemptsMax,
      dead_queue: queue.deadQueue,
      on_dead: queue.onDead,
      retry: viewRetry(queue.retry),
      done_retention: formatDuration(queue.doneRetentionUs),
      letter_class: queue.letterClass,
      redrive: {
        mode: queue.redrive.mode,
        redrives_max: queue.redrive.redrivesMax,
        backoff: viewRetry(queue.redrive.backoff),
      },
      reference: queue.reference,
    },
    counts: sumCounts(counts),
  }
}

export function viewRetry(policy: RetryPolicy): RetryView {
  // A list that grows beyond its end is only used for webhook consumers (docs/webhooks.md).
  const kind = policy.kind === 'growing-list' ? 'list' : policy.kind
  return { kind, delays: listDelaysUs(policy).map(formatDuration), jitter: policy.jitter }
}

function listDelaysUs(policy: RetryPolicy): readonly number[] {
  switch (policy.kind) {
    case 'fixed':
      return [policy.delayUs]
    case 'list':
    case 'growing-list':
      return policy.delaysUs
    case 'exponential':
      return [policy.delayUsMin, policy.delayUsMax]
  }
}

function sumCounts(partitions: readonly Counts[]): Static<typeof CountsView> {
  const sum = (read: (partition: Counts) => number): number =>
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
