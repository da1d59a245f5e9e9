/** One column holds the end of a lease, and for an imported item that is not leased the one it came with. */
import type { Instant } from '../../core/instant.ts'
import type { Item, Waiting } from '../../core/item.ts'

export function leaseDeadlineOf(item: Item): Instant | null {
  if (item.state === 'leased') return item.lease.deadline
  return item.state === 'waiting' ? (item.givenLeaseDeadline ?? null) : null
}

export function waitingOf(
  base: Omit<Waiting, 'state' | 'availableAt' | 'givenLeaseDeadline'>,
  availableAt: Instant | null,
  leaseDeadline: Instant | null,
): Waiting {
  const waiting = { ...base, state: 'waiting', availableAt } as const
  return leaseDeadline === null ? waiting : { ...waiting, givenLeaseDeadline: leaseDeadline }
}
