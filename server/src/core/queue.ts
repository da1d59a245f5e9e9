import type { Instant } from './instant.ts'
import { type RetryPolicy, retryAtOnce } from './retry.ts'

/** What a person sets on a queue. Durations are whole microseconds. */
export type QueuePolicy = Readonly<{
  leaseUs: number
  /** How long an item may wait before it is dead. Dead letters do not expire. */
  expireUs: number
  /** 0: no bound. Reached, the end of a lease is a death; exceeded, a retry is one too. */
  attemptsMax: number
  /** The queue that takes what dies in this one. */
  deadQueue: string | null
  /** Without a dead queue: delete what dies, counted and logged, or keep it as dead in place. */
  onDead: 'delete' | 'keep'
  retry: RetryPolicy
  /** How long completed items are kept as done; 0 removes them at once. */
  keepDoneUs: number
  isPaused: boolean
  /** For a dead queue: how alerts and retention treat its letters. */
  letterClass: string
  /** For a dead queue: whether letters go back by themselves, and how often at most. */
  redrive: Readonly<{ mode: 'manual' | 'auto'; redrivesMax: number; backoff: RetryPolicy }>
  reference: string
}>

export type Queue = Readonly<
  QueuePolicy & {
    name: string
    namespace: string
    partitions: number
    createdAt: Instant
    updatedAt: Instant
    /**
     * Whether letters go back by themselves, or how often, was changed, and those in it are told step by step, in the order of their death:
     * the last one that was. Null: none was yet. Undefined: there is nothing to tell.
     */
    replannedUntil?: Readonly<{ value: Instant; id: string }> | null
  }
>

/** Some of it. Also of how letters go back: what is not named stays as it is. */
export type PolicyChanges = Readonly<
  Partial<Omit<QueuePolicy, 'redrive'>> & { redrive?: Partial<QueuePolicy['redrive']> }
>

export type NewQueue = Readonly<PolicyChanges & { name: string; namespace?: string; partitions?: number }>

/** Each one costs rows in the store and room in every server, for as long as the queue is there. */
export const partitionsMax = 10_000

export const systemNamespace = '_system'

export const defaultPolicy: QueuePolicy = {
  leaseUs: 60_000_000,
  expireUs: 24 * 3600 * 1_000_000,
  attemptsMax: 0,
  deadQueue: null,
  onDead: 'delete',
  retry: retryAtOnce,
  keepDoneUs: 0,
  isPaused: false,
  letterClass: 'standard',
  redrive: {
    mode: 'manual',
    redrivesMax: 3,
    backoff: { kind: 'exponential', delayUsMin: 60_000_000, delayUsMax: 3_600_000_000, jitter: 0.2 },
  },
  reference: '',
}

export function changePolicy(queue: Queue, changes: PolicyChanges, now: Instant): Queue {
  const redrive = { ...queue.redrive, ...changes.redrive }
  const changed = { ...queue, ...changes, redrive, updatedAt: now }
  return needsReplan(queue, changed) ? { ...changed, replannedUntil: null } : changed
}

/** Whether letters that wait go back by themselves now, or do no more; some of them also because the cap came down. */
function needsReplan(before: Queue, after: Queue): boolean {
  if (isAutomatic(before) !== isAutomatic(after)) return true
  return isAutomatic(after) && after.redrive.redrivesMax < before.redrive.redrivesMax
}

/** Whether letters go back by themselves. */
export function isAutomatic({ redrive }: Pick<QueuePolicy, 'redrive'>): boolean {
  return redrive.mode === 'auto' && redrive.redrivesMax > 0
}

export function newQueue(spec: NewQueue, now: Instant): Queue {
  const { namespace = systemNamespace, partitions = 1, ...policy } = spec
  const redrive = { ...defaultPolicy.redrive, ...policy.redrive }
  return { ...defaultPolicy, ...policy, redrive, namespace, partitions, createdAt: now, updatedAt: now }
}
