/**
 * Decides which ids a settle (complete, retry, extend, unlease) accepts. A settle changes all of its items or
 * none, so a store asks this before it changes the first one.
 */

import { isRedriving } from '../dead-letters/letter.ts'
import type { ItemId } from '../ids/ids.ts'
import { type ItemHead, type ListedState, toListedState } from './item.ts'

/**
 * `missing` includes items that cannot be settled: scheduled, done, dead and discarded items, and letters
 * whose redrive is in progress. An id that is repeated in the command is `missing` the second time.
 */
export type SettleRefusal = Readonly<{ id: ItemId; refusal: 'missing' | 'not-leased' }>

type LeasedOf<I extends ItemHead> = Extract<I, { state: 'leased' }>

/** `items`: the leased items, in the order of the ids. */
export type SettleDecision<I extends ItemHead = ItemHead> = Readonly<{
  items: readonly LeasedOf<I>[]
  refused: readonly SettleRefusal[]
}>

/** `find` returns items or only their heads; the decision has the same. */
export function decideSettle<I extends ItemHead>(
  ids: readonly ItemId[],
  find: (id: ItemId) => I | undefined,
): SettleDecision<I> {
  const items: LeasedOf<I>[] = []
  const refused: SettleRefusal[] = []
  const seen = new Set<ItemId>()
  for (const id of ids) {
    const item = seen.has(id) ? undefined : find(id)
    seen.add(id)
    if (isSettleable(item)) items.push(item)
    else refused.push({ id, refusal: findSettleRefusal(item && toListedState(item)) })
  }
  return { items, refused }
}

function isSettleable<I extends ItemHead>(item: I | undefined): item is LeasedOf<I> {
  return item?.state === 'leased' && !isRedriving(item)
}

/** The reason for an item that is not leased by a worker. Undefined: there is no such item. */
export function findSettleRefusal(state: ListedState | undefined): SettleRefusal['refusal'] {
  return state === 'waiting' ? 'not-leased' : 'missing'
}
