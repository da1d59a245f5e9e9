/** The settings of a new queue. Durations are text: `300ms`, `1m`, `24h`. */
export type NewQueue = Readonly<{
  name: string
  /** How long a lease lasts. */
  lease: string
  /** How long an item may wait before it becomes dead. */
  expire: string
  /**
   * 0, the default: no limit. An item becomes dead if its lease ends and its attempts have reached the limit,
   * or if it is retried and its attempts exceed the limit. With 2: at the end of the second lease, or at the
   * third retry.
   */
  attemptsMax?: number
  /** The queue that receives the items that die in this queue. */
  deadQueue?: string | null
  /** Free text. */
  reference?: string
  /** Default 1. */
  partitions?: number
  namespace?: string
}>

/** The server always replaces the three required settings. Optional settings stay unchanged if omitted. */
export type QueueUpdate = Readonly<{
  name: string
  lease?: string
  expire?: string
  attemptsMax: number
  deadQueue: string | null
  reference: string
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
