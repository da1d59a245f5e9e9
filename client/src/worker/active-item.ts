import type { LeasedItem } from '../queues/item.ts'

/** An item of a worker, from its lease until it is settled or its lease is lost. */
export type ActiveItem = {
  readonly item: LeasedItem
  readonly partition: number
  /** Aborts the handler's signal. */
  readonly controller: AbortController
  /** By the clock's `elapsedMs`. */
  leaseEndsAtMs: number
  isLost: boolean
}
