/**
 * Decides which ids a settle (complete, retry, extend, unlease) accepts. A settle changes all of its items or
 * none, so a store asks this before it changes the first one.
 */
import { type Item, type Leased, type ListedState, listedState } from './item.ts'
import { isRedriving } from './letter.ts'

/**
 * `missing` includes items that cannot be settled: scheduled, done, dead and discarded items, and letters
 * whose redrive is in progress. An id that is repeated in the command is `missing` the second time.
 */
export type SettleRefusal = Readonly<{ id: string; why: 'missing' | 'not-leased' }>

/** `items`: the leased items, in the order of the ids. */
export type SettleDecision = Readonly<{ items: readonly Leased[]; refused: readonly SettleRefusal[] }>

export function decideSettle(ids: readonly string[], find: (id: string) => Item | undefined): SettleDecision {
  const items: Leased[] = []
  const refused: SettleRefusal[] = []
  const seen = new Set<string>()
  for (const id of ids) {
    const item = seen.has(id) ? undefined : find(id)
    seen.add(id)
    if (item?.state === 'leased' && !isRedriving(item)) items.push(item)
    else refused.push({ id, why: whyNotSettled(item && listedState(item)) })
  }
  return { items, refused }
}

/** The reason for an item that is not leased by a worker. Undefined: there is no such item. */
export function whyNotSettled(state: ListedState | undefined): SettleRefusal['why'] {
  return state === 'waiting' ? 'not-leased' : 'missing'
}
