import { LeasedItem } from '../src/item.ts'
import type { HeldItem } from '../src/worker/held-item.ts'

/** An item that a worker holds; `number` makes its id. */
export function aHeldItem(number: number, over: Partial<HeldItem> = {}): HeldItem {
  const id = String(number).padStart(27, '0')
  return {
    item: new LeasedItem({ id, lease_deadline: '2026-01-01T00:01:00Z' }),
    partition: 0,
    ending: new AbortController(),
    leaseEndsAtMs: 60_000,
    isLost: false,
    ...over,
  }
}
