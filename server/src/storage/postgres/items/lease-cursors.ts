import type { Item } from '../../../core/items/item.ts'
import { RowLocations } from './leased-row-locations.ts'

/**
 * The position at which the next lease of a partition starts to look for items.
 *
 * Leased rows stay in the index of available items, at its front. To avoid reading all of them, a lease
 * starts where the last one ended: all items that this server knows of are behind that position. A command
 * that may add an item before it drops the cursor. Items that other servers add before it are found when the
 * cursor is too old, or when a lease finds fewer items than it needs while the counts show more.
 */
export class LeaseCursors {
  readonly rowLocations = new RowLocations()
  /** Grows when a cursor is dropped, so that the result of an earlier statement does not set it again. */
  dropCount = 0
  readonly #cursors = new Map<string, Readonly<{ rank: number; id: string; sinceMs: number }>>()

  has(partition: PartitionKey): boolean {
    return this.get(partition) !== undefined
  }

  get({ queue, partition }: PartitionKey): LeasePosition | undefined {
    const key = `${queue}/${partition}`
    const cursor = this.#cursors.get(key)
    if (cursor === undefined) return undefined
    if (performance.now() - cursor.sinceMs < ageMsMax) return cursor
    this.#cursors.delete(key)
    return undefined
  }

  /**
   * Moves the cursor behind the last leased item; undefined leaves it where it is. `dropsBefore`: the drop
   * count when the lease was sent.
   */
  moveTo(
    { queue, partition }: PartitionKey,
    last: Pick<Item, 'id' | 'priority'> | undefined,
    dropsBefore: number,
  ): void {
    if (last === undefined || dropsBefore !== this.dropCount) return
    const key = `${queue}/${partition}`
    const before = this.#cursors.get(key)
    const sinceMs = before?.sinceMs ?? performance.now()
    const rank = -last.priority
    // The results of two statements can arrive in the wrong order. The position further on is right.
    if (before !== undefined && (before.rank > rank || (before.rank === rank && before.id > last.id))) return
    this.#cursors.set(key, { rank, id: last.id, sinceMs })
  }

  /** Drops the cursor if new items of this priority are before it. */
  dropIfPassed({ queue, partition }: PartitionKey, priority: number): void {
    const key = `${queue}/${partition}`
    const cursor = this.#cursors.get(key)
    // Without a cursor too: the result of a lease in progress may set one.
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

/** A position in the order of leases: by rank, which is the negative priority, then by id. */
export type LeasePosition = Readonly<{ rank: number; id: string }>

export const startOfPartition: LeasePosition = { rank: -(2 ** 31), id: '' }

type PartitionKey = Readonly<{ queue: string; partition: number }>

const ageMsMax = 1_000
