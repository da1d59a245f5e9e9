import { fromWireTime } from './time.ts'

/** What a person sets on a queue. Durations are text: `300ms`, `1m`, `24h`. */
export type NewQueue = Readonly<{
  name: string
  /** How long a lease lasts. */
  lease: string
  /** How long an item may wait before it is dead. */
  expire: string
  /**
   * 0, the default: no bound. Reached, an item whose lease ends by itself is dead; exceeded, one that is given
   * back is dead too. With 2 that is the second lease that just ends, or the third retry.
   */
  attemptsMax?: number
  /** The queue that takes what dies in this one. */
  deadQueue?: string | null
  /** Free text. */
  reference?: string
  /** Default 1. */
  partitions?: number
  namespace?: string
}>

/** The three that the server replaces always, also by nothing, must be said. The others stay when left out. */
export type QueueUpdate = Readonly<{
  name: string
  lease?: string
  expire?: string
  attemptsMax: number
  deadQueue: string | null
  reference: string
}>

export type QueueInfo = Readonly<{
  name: string
  lease: string
  expire: string
  attemptsMax: number
  deadQueue: string | null
  reference: string
  partitions: number
  namespace: string
  createdAt: string | null
  updatedAt: string | null
}>

export type WireQueueInfo = Readonly<{
  queue_name?: string
  lease_timeout?: string
  expire_timeout?: string
  max_attempts?: number
  dead_queue?: string
  reference?: string
  requested_partitions?: number
  namespace?: string
  created_at?: string
  updated_at?: string
}>

export function toWireQueue(queue: NewQueue | QueueUpdate): Readonly<Record<string, unknown>> {
  const { namespace, partitions } = { namespace: undefined, partitions: undefined, ...queue }
  return {
    queue_name: queue.name,
    lease_timeout: queue.lease,
    expire_timeout: queue.expire,
    max_attempts: queue.attemptsMax,
    dead_queue: queue.deadQueue ?? undefined,
    reference: queue.reference,
    requested_partitions: partitions,
    namespace,
  }
}

export function fromWireQueue(wire: WireQueueInfo): QueueInfo {
  return {
    name: wire.queue_name ?? '',
    lease: wire.lease_timeout ?? '',
    expire: wire.expire_timeout ?? '',
    attemptsMax: wire.max_attempts ?? 0,
    deadQueue: wire.dead_queue || null,
    reference: wire.reference ?? '',
    partitions: wire.requested_partitions ?? 0,
    namespace: wire.namespace ?? '',
    createdAt: fromWireTime(wire.created_at),
    updatedAt: fromWireTime(wire.updated_at),
  }
}
