import type { GroupingRule } from '../grouping/rules.ts'
import type { ItemId, QueueName } from '../ids/ids.ts'
import type { RedactionPolicy } from '../redaction/redaction-rules.ts'
import { type Instant, instantMax } from '../time/instant.ts'
import { type RetryPolicy, retryImmediately } from './retry.ts'

/** The settings of a queue. Durations are whole microseconds. */
export type QueuePolicy = Readonly<{
  leaseTimeoutUs: number
  /** An item that waits longer than this dies. Dead letters do not expire. */
  expireTimeoutUs: number
  /**
   * 0: no limit. An item whose attempts reach the limit dies when its lease ends; an item whose attempts
   * exceed it also dies when a worker asks for a retry.
   */
  attemptsMax: number
  /** The queue that receives the items that die in this one. */
  deadQueue: QueueName | null
  /** Without a dead queue: delete an item that dies, counted and logged, or keep it here as dead. */
  onDead: 'delete' | 'keep'
  retry: RetryPolicy
  /** How long completed items are kept as done; 0 removes them immediately. */
  doneRetentionUs: number
  isPaused: boolean
  /**
   * For a dead queue: decides how alerts and retention treat its letters, see
   * core/dead-letters/letter-class.ts.
   */
  letterClass: string
  /** For a dead queue: whether its letters are redriven automatically, and how often at most. */
  redrive: Readonly<{ mode: 'manual' | 'auto'; redrivesMax: number; backoff: RetryPolicy }>
  reference: string
  /**
   * For the queue of a webhook consumer. Its items are jobs: they keep their id and so their order when they
   * are retried, the limit of attempts also applies if it is 0, and a redriven job is not kept as done,
   * because its letter is. Undefined: an ordinary queue.
   */
  delivery?: Delivery
  /** For a dead queue: rules by which its letters are grouped. */
  groupingRules?: readonly GroupingRule[]
  /** The view of callers who may not read payloads. Undefined: no payload, key and secret header. */
  redaction?: RedactionPolicy
}>

/** `push`: the end of a lease never kills a job. `pull`: it kills a job that has used its attempts. */
export type Delivery = 'push' | 'pull'

/** A duration that never ends. */
export const foreverUs = instantMax

export type Queue = Readonly<
  QueuePolicy & {
    name: QueueName
    namespace: string
    partitions: number
    createdAt: Instant
    updatedAt: Instant
    /**
     * The progress of applying a changed redrive policy to the letters of the queue, in steps and in the
     * order of their death: the last letter that it was applied to. Null: not started. Undefined: nothing to
     * do.
     */
    replannedUntil?: Readonly<{ value: Instant; id: ItemId }> | null
  }
>

/** Settings that are not named stay as they are, also the single settings of `redrive`. */
export type PolicyChanges = Readonly<
  Partial<Omit<QueuePolicy, 'redrive'>> & { redrive?: Partial<QueuePolicy['redrive']> }
>

export type NewQueue = Readonly<PolicyChanges & { name: QueueName; namespace?: string; partitions?: number }>

/** Each partition costs rows in the store and memory in every server for as long as its queue exists. */
export const partitionsMax = 10_000

export const systemNamespace = '_system'

export const defaultPolicy: QueuePolicy = {
  leaseTimeoutUs: 60_000_000,
  expireTimeoutUs: 24 * 3600 * 1_000_000,
  attemptsMax: 0,
  deadQueue: null,
  onDead: 'delete',
  retry: retryImmediately,
  doneRetentionUs: 0,
  isPaused: false,
  letterClass: 'standard',
  redrive: {
    mode: 'manual',
    redrivesMax: 3,
    backoff: { kind: 'exponential', delayUsMin: 60_000_000, delayUsMax: 3_600_000_000, jitter: 0.2 },
  },
  reference: '',
}

/**
 * The defaults of queues that are created with our own API and client. The Queue API has those of its
 * contract: no limit, and a retry is immediate. The delays before the tenth attempt add up to 511 s, so that
 * no item dies in an outage of 8 minutes.
 */
export const boundedPolicy: QueuePolicy = {
  ...defaultPolicy,
  attemptsMax: 10,
  retry: { kind: 'exponential', delayUsMin: 1_000_000, delayUsMax: 300_000_000, jitter: 0.2 },
}

export function changePolicy(queue: Queue, changes: PolicyChanges, now: Instant): Queue {
  const redrive = { ...queue.redrive, ...changes.redrive }
  const changed = { ...queue, ...changes, redrive, updatedAt: now }
  return needsReplan(queue, changed) ? { ...changed, replannedUntil: null } : changed
}

/**
 * Whether the change schedules or unschedules automatic redrives of waiting letters, or lowers the limit, so
 * that some letters become DEAD.
 */
function needsReplan(before: Queue, after: Queue): boolean {
  if (isAutomatic(before) !== isAutomatic(after)) return true
  return isAutomatic(after) && after.redrive.redrivesMax < before.redrive.redrivesMax
}

/** Whether letters are redriven automatically. */
export function isAutomatic({ redrive }: Pick<QueuePolicy, 'redrive'>): boolean {
  return redrive.mode === 'auto' && redrive.redrivesMax > 0
}

export function buildQueue(spec: NewQueue, now: Instant): Queue {
  const { namespace = systemNamespace, partitions = 1, ...policy } = spec
  const redrive = { ...defaultPolicy.redrive, ...policy.redrive }
  return { ...defaultPolicy, ...policy, redrive, namespace, partitions, createdAt: now, updatedAt: now }
}
