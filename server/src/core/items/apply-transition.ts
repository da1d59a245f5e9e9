import { copyBase, withFailure, withoutNextRedrive } from '../dead-letters/letter.ts'
import type { ItemId } from '../ids/ids.ts'
import type { Instant } from '../time/instant.ts'
import { type Failure, type ItemHead, isLetter } from './item.ts'
import type { QueuePolicy } from './queue.ts'
import { expireDeadlineWhenPromoted, type Transition } from './transitions.ts'

/** A transition after which the item is still in its queue. */
export type TransitionInPlace = Extract<Transition, { to: 'waiting' | 'done' | 'dead' }>

/**
 * Returns the item as it is after the transition. An item that goes to the tail of its partition gets a new
 * id from `nextId`; a scheduled item keeps its id until it becomes available. The items of a webhook consumer
 * always keep their id: equal priority goes in order of creation, also after a retry.
 */
export function applyTransition(
  item: ItemHead,
  transition: TransitionInPlace,
  policy: Pick<QueuePolicy, 'expireTimeoutUs' | 'delivery'>,
  now: Instant,
  nextId: () => ItemId,
): ItemHead {
  const base = { ...copyBase(item), updatedAt: now }
  switch (transition.to) {
    case 'waiting': {
      const { availableAt, failure, cause } = transition
      const id = availableAt === null && policy.delivery === undefined ? nextId() : item.id
      const expireDeadline =
        cause === 'schedule' ? expireDeadlineWhenPromoted(item, policy, now) : item.expireDeadline
      const failed = withFailure(item, failure)
      const kept = id === item.id ? failed : { ...failed, failure: withItemId(item, failed.failure) }
      return { ...base, id, state: 'waiting', availableAt, expireDeadline, ...kept }
    }
    case 'done':
      return { ...base, state: 'done', endedAt: now, letter: withoutNextRedrive(item) }
    case 'dead':
      return {
        ...base,
        state: 'dead',
        endedAt: now,
        deadLetteredAt: item.deadLetteredAt ?? now,
        letter: withoutNextRedrive(item),
        ...withFailure(item, transition.failure),
      }
  }
}

/**
 * Notes the present id of an item that gets another one: a person who knows this id finds the dead letter by
 * it (core/dead-letters/letter-ids.ts). The ids of letters are recorded at once, so their failures stay as
 * they are.
 */
function withItemId(item: ItemHead, failure: Failure | null): Failure | null {
  if (failure === null || isLetter(item) || failure.itemId !== undefined) return failure
  return { ...failure, itemId: item.id }
}
