import type { Instant } from './instant.ts'
import type { Item, Waiting } from './item.ts'
import type { QueuePolicy } from './queue.ts'
import { expireDeadlineWhenPromoted, type Fate } from './transitions.ts'

/** A fate that leaves the item where it is. */
export type FateInPlace = Extract<Fate, { to: 'waiting' | 'done' | 'dead' }>

/**
 * The item as it is afterwards. A scheduled item keeps its id until it is promoted; at the tail every
 * item has a new one, which `nextId` gives.
 */
export function become(
  item: Item,
  fate: FateInPlace,
  policy: Pick<QueuePolicy, 'expireUs'>,
  now: Instant,
  nextId: () => string,
): Item {
  const base = { ...stateless(item), updatedAt: now }
  switch (fate.to) {
    case 'waiting': {
      const { availableAt, failure, because } = fate
      const id = availableAt === null ? nextId() : item.id
      const expireDeadline =
        because === 'schedule' ? expireDeadlineWhenPromoted(item, policy, now) : item.expireDeadline
      return { ...base, id, state: 'waiting', availableAt, failure, expireDeadline }
    }
    case 'done':
      return { ...base, state: 'done', endedAt: now }
    case 'dead':
      return { ...base, state: 'dead', endedAt: now, diedAt: item.diedAt ?? now, failure: fate.failure }
  }
}

/** What every state has: the item without what only its present state has. */
function stateless(item: Item): Omit<Waiting, 'state' | 'availableAt'> {
  const { state, availableAt, lease, endedAt, ...base } = item as Item & {
    availableAt?: unknown
    lease?: unknown
    endedAt?: unknown
  }
  return base
}
