import type { LeasedItem } from '../item.ts'

/** An item from its lease until it is settled or lost. */
export type HeldItem = {
  readonly item: LeasedItem
  readonly partition: number
  /** Tells the handler to give up. */
  readonly ending: AbortController
  /** By the clock's `elapsedMs`. */
  leaseEndsAtMs: number
  isLost: boolean
}
