import type { Item } from '../../../core/item.ts'
import { RowLocations } from './leased-row-locations.ts'

/**
 * Where the next lease of a partition begins to look.
 *
 * Leased rows stay in the index that leases go by, at its front. So that not every lease walks over all
 * of them, it begins where the last one ended: what this server knows of stands behind that. Whatever may
 * put an item before it drops the cursor; what other servers put there is found when the cursor is too
 * old, or when a lease finds fewer than it was asked for while the counts say that there are more.
 */
export class LeaseCursors {
  /** And where what was leased is. */
  readonly places = new RowLocations()
  /** Changes when a cursor is dropped: an answer that was asked for before must not bring it back. */
  drops = 0
  readonly #places = new Map<string, Readonly<{ rank: number; id: string; since: number }>>()

  has(place: Place): boolean {
    return this.at(place) !== undefined
  }

  at({ queue, partition }: Place): Readonly<{ rank: number; id: string }> | undefined {
    const key = `${queue}/${partition}`
    const cursor = this.#places.get(key)
    if (cursor === undefined) return undefined
    if (performance.now() - cursor.since < msMax) return cursor
    this.#places.delete(key)
    return undefined
  }

  /** The last of what was leased; undefined leaves the cursor where it is. */
  moveTo(
    { queue, partition }: Place,
    last: Pick<Item, 'id' | 'priority'> | undefined,
    dropsBefore: number,
  ): void {
    if (last === undefined || dropsBefore !== this.drops) return
    const key = `${queue}/${partition}`
    const before = this.#places.get(key)
    const since = before?.since ?? performance.now()
    const rank = -last.priority
    // Answers of two statements may cross: the one that was obeyed later is further on.
    if (before !== undefined && (before.rank > rank || (before.rank === rank && before.id > last.id))) return
    this.#places.set(key, { rank, id: last.id, since })
  }

  /** Items of such a priority come to stand at the end of it. */
  makeRoom({ queue, partition }: Place, priority: number): void {
    const key = `${queue}/${partition}`
    const cursor = this.#places.get(key)
    // Without a cursor, too: one may be on its way.
    if (cursor !== undefined ? -priority < cursor.rank : priority !== 0) this.#drop(key)
  }

  drop(queue: string): void {
    this.drops++
    for (const key of this.#places.keys()) {
      if (key.slice(0, key.lastIndexOf('/')) === queue) this.#places.delete(key)
    }
  }

  dropAll(): void {
    this.drops++
    this.#places.clear()
  }

  #drop(key: string): void {
    this.drops++
    this.#places.delete(key)
  }
}

export const fromTheStart = { rank: -(2 ** 31), id: '' } as const

type Place = Readonly<{ queue: string; partition: number }>

const msMax = 1_000
