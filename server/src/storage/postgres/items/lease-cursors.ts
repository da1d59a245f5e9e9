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
  readonly rowLocations = new RowLocations()
  /** Changes when a cursor is dropped: an answer that was asked for before must not bring it back. */
  dropCount = 0
  readonly #cursors = new Map<string, Readonly<{ rank: number; id: string; since: number }>>()

  has(place: PartitionKey): boolean {
    return this.get(place) !== undefined
  }

  get({ queue, partition }: PartitionKey): Readonly<{ rank: number; id: string }> | undefined {
    const key = `${queue}/${partition}`
    const cursor = this.#cursors.get(key)
    if (cursor === undefined) return undefined
    if (performance.now() - cursor.since < msMax) return cursor
    this.#cursors.delete(key)
    return undefined
  }

  /** The last of what was leased; undefined leaves the cursor where it is. */
  moveTo(
    { queue, partition }: PartitionKey,
    last: Pick<Item, 'id' | 'priority'> | undefined,
    dropsBefore: number,
  ): void {
    if (last === undefined || dropsBefore !== this.dropCount) return
    const key = `${queue}/${partition}`
    const before = this.#cursors.get(key)
    const since = before?.since ?? performance.now()
    const rank = -last.priority
    // Answers of two statements may cross: the one that was obeyed later is further on.
    if (before !== undefined && (before.rank > rank || (before.rank === rank && before.id > last.id))) return
    this.#cursors.set(key, { rank, id: last.id, since })
  }

  /** Items of such a priority come to stand at the end of it. */
  dropIfPassed({ queue, partition }: PartitionKey, priority: number): void {
    const key = `${queue}/${partition}`
    const cursor = this.#cursors.get(key)
    // Without a cursor, too: one may be on its way.
    if (cursor !== undefined ? -priority < cursor.rank : priority !== 0) this.#drop(key)
  }

  dropQueue(queue: string): void {
    this.dropCount++
    for (const key of this.#cursors.keys()) {
      if (key.slice(0, key.lastIndexOf('/')) === queue) this.#cursors.delete(key)
    }
  }

  dropAll(): void {
    this.dropCount++
    this.#cursors.clear()
  }

  #drop(key: string): void {
    this.dropCount++
    this.#cursors.delete(key)
  }
}

export const startOfPartition = { rank: -(2 ** 31), id: '' } as const

type PartitionKey = Readonly<{ queue: string; partition: number }>

const msMax = 1_000
