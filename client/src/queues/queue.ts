/** Queues and their policies, with the words of `/api/v1` in camelCase. */
import type { WirePolicy, WirePolicyChanges, WireQueue, WireRetry } from '../wire.ts'

/**
 * How long an item waits before its next attempt. `delays`: for fixed the one delay, for list one per
 * attempt, for exponential the first and the longest. `jitter`: 0.2 randomises each delay by up to 20 % in
 * both directions.
 */
export type RetryPolicy = WireRetry

/** The rules of a queue. Durations are text: `300ms`, `1m`, `24h`. */
export type QueuePolicy = Readonly<{
  /** How long a lease lasts. */
  leaseTimeout: string
  /** How long an item may wait before it becomes dead. */
  expireTimeout: string
  /**
   * 0: no limit. An item becomes dead if its lease ends and its attempts have reached the limit, or if it is
   * retried and its attempts exceed the limit. With 2: at the end of the second lease, or at the third retry.
   */
  attemptsMax: number
  /** The queue that receives the items that die in this queue. */
  deadQueue: string | null
  /** For a queue without a dead queue: delete items that die, or keep them in the queue as dead. */
  onDead: 'delete' | 'keep'
  retry: RetryPolicy
  /** How long completed items are kept. */
  doneRetention: string
  /** For a dead queue: how alerts and retention treat its letters. */
  letterClass: string
  /** For a dead queue: whether its letters are redriven automatically. */
  redrive: Readonly<{ mode: 'manual' | 'auto'; redrivesMax: number; backoff: RetryPolicy }>
  /** Free text. */
  reference: string
}>

type RetryChange = Omit<RetryPolicy, 'jitter'> & Readonly<{ jitter?: number }>

/** Some rules of a policy. A new queue has the default of an omitted rule; an update does not change it. */
export type PolicyChanges = Partial<Omit<QueuePolicy, 'retry' | 'redrive'>> &
  Readonly<{
    retry?: RetryChange
    redrive?: Partial<Omit<QueuePolicy['redrive'], 'backoff'>> & Readonly<{ backoff?: RetryChange }>
  }>

export type NewQueue = Readonly<{
  name: string
  /** Default `_system`. It cannot change later. */
  namespace?: string
  /** Default 1. */
  partitions?: number
  /** Default: 10 attempts, with delays that grow from 1 s to 5 min. */
  policy?: PolicyChanges
  /** A paused queue leases no items. Default false. */
  isPaused?: boolean
}>

/** A queue with its policy and exact counts. */
export type Queue = Readonly<{
  name: string
  namespace: string
  partitions: number
  isPaused: boolean
  createdAt: string
  updatedAt: string
  policy: QueuePolicy
  counts: Readonly<
    Record<'waiting' | 'scheduled' | 'leased' | 'done' | 'dead' | 'discarded' | 'archived', number> &
      Record<
        'accepted' | 'completed' | 'deadLettered' | 'dropped' | 'deleted' | 'forgotten' | 'purged',
        number
      >
  >
}>

/**
 * `warnings`: sentences about the consequences of the policy, such as what happens to items that fail if the
 * queue has no dead queue.
 */
export type CreatedQueue = Queue & Readonly<{ warnings: readonly string[] }>

export type QueuesQuery = Readonly<{
  namespace?: string
  /** `nextCursor` of the previous page. */
  cursor?: string
  limit?: number
}>

export type QueuesPage = Readonly<{
  queues: readonly Queue[]
  /** Null on the last page. */
  nextCursor: string | null
}>

export function toWirePolicy(policy: PolicyChanges): WirePolicyChanges {
  const { leaseTimeout, expireTimeout, attemptsMax, deadQueue, onDead, doneRetention, letterClass } = policy
  const { retry, redrive, reference } = policy
  return {
    ...(leaseTimeout !== undefined && { lease_timeout: leaseTimeout }),
    ...(expireTimeout !== undefined && { expire_timeout: expireTimeout }),
    ...(attemptsMax !== undefined && { attempts_max: attemptsMax }),
    ...(deadQueue !== undefined && { dead_queue: deadQueue }),
    ...(onDead !== undefined && { on_dead: onDead }),
    ...(retry !== undefined && { retry }),
    ...(doneRetention !== undefined && { done_retention: doneRetention }),
    ...(letterClass !== undefined && { letter_class: letterClass }),
    ...(redrive !== undefined && { redrive: toWireRedrive(redrive) }),
    ...(reference !== undefined && { reference }),
  }
}

function toWireRedrive({ mode, redrivesMax, backoff }: NonNullable<PolicyChanges['redrive']>) {
  return {
    ...(mode !== undefined && { mode }),
    ...(redrivesMax !== undefined && { redrives_max: redrivesMax }),
    ...(backoff !== undefined && { backoff }),
  }
}

export function fromWireQueue({ is_paused, created_at, updated_at, policy, ...wire }: WireQueue): Queue {
  const { dead_lettered, ...counts } = wire.counts
  return {
    name: wire.name,
    namespace: wire.namespace,
    partitions: wire.partitions,
    isPaused: is_paused,
    createdAt: created_at,
    updatedAt: updated_at,
    policy: fromWirePolicy(policy),
    counts: { ...counts, deadLettered: dead_lettered },
  }
}

function fromWirePolicy(policy: WirePolicy): QueuePolicy {
  const { mode, redrives_max: redrivesMax, backoff } = policy.redrive
  return {
    leaseTimeout: policy.lease_timeout,
    expireTimeout: policy.expire_timeout,
    attemptsMax: policy.attempts_max,
    deadQueue: policy.dead_queue,
    onDead: policy.on_dead,
    retry: policy.retry,
    doneRetention: policy.done_retention,
    letterClass: policy.letter_class,
    redrive: { mode, redrivesMax, backoff },
    reference: policy.reference,
  }
}
