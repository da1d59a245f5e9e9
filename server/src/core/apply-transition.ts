import type { Instant } from './instant.ts'
import type { ItemHead } from './item.ts'
import { baseOf, withFailure, withoutNextRedrive } from './letter.ts'
import type { QueuePolicy } from './queue.ts'
import { expireDeadlineWhenPromoted, type Transition } from './transitions.ts'

/** A fate that leaves the item where it is. */
export type TransitionInPlace = Extract<Transition, { to: 'waiting' | 'done' | 'dead' }>

/**
 * The item as it is afterwards. A scheduled item keeps its id until it is promoted; at the tail every
 * item has a new one, which `nextId` gives.
 */
export function applyTransition(
  item: ItemHead,
  transition: TransitionInPlace,
  policy: Pick<QueuePolicy, 'expireUs'>,
  now: Instant,
  nextId: () => string,
): ItemHead {
  const base = { ...baseOf(item), updatedAt: now }
  switch (transition.to) {
    case 'waiting': {
      const { availableAt, failure, cause } = transition
      const id = availableAt === null ? nextId() : item.id
      const expireDeadline =
        cause === 'schedule' ? expireDeadlineWhenPromoted(item, policy, now) : item.expireDeadline
      return { ...base, id, state: 'waiting', availableAt, expireDeadline, ...withFailure(item, failure) }
    }
    case 'done':
      return { ...base, state: 'done', endedAt: now, letter: withoutNextRedrive(item) }
    case 'dead':
      return {
        ...base,
        state: 'dead',
        endedAt: now,
        diedAt: item.diedAt ?? now,
        letter: withoutNextRedrive(item),
        ...withFailure(item, transition.failure),
      }
  }
}
