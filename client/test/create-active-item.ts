import { LeasedItem } from '../src/queues/item.ts'
import type { ActiveItem } from '../src/worker/active-item.ts'

/** An item of a worker. `number` determines its id. */
export function createActiveItem(number: number, overrides: Partial<ActiveItem> = {}): ActiveItem {
  const id = String(number).padStart(27, '0')
  return {
    item: new LeasedItem({ id, lease_deadline: '2026-01-01T00:01:00Z' }),
    partition: 0,
    controller: new AbortController(),
    leaseEndsAtMs: 60_000,
    isLost: false,
    ...overrides,
  }
}
