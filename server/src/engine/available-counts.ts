/**
 * How many items each partition of a queue has for leasing, as far as this server knows.
 *
 * The numbers are a hint: whoever leases asks the store, and the store decides. While this is the only server they
 * are never too low; with several, what is missing is found by looking (`look`, `looked`). Too high costs a lease that
 * finds nothing.
 */
import type { PartitionCounts } from '../storage/contract/storage.ts'

/** What was known when the store was asked. */
export type Asked = Readonly<{ gained: readonly number[]; taken: readonly number[]; looks: number }>
/** `spokenFor` of the items of a partition, of `asked`, were believed to be there. */
export type Claim = Readonly<{ partition: number; asked: number; spokenFor: number }>

export class Stock {
  readonly #available: number[]
  /** How many became available since it was opened: what came while the store was asked is not in its answer. */
  readonly #gained: number[]
  /** How many were leased since then, or are being leased. */
  readonly #taken: number[]
  /** How many are being stored. */
  readonly #placing: number[]
  #looks = 0

  constructor(partitions: number, available: readonly number[]) {
    this.#available = Array.from({ length: partitions }, (_, partition) => available[partition] ?? 0)
    this.#gained = this.#available.map(() => 0)
    this.#taken = this.#available.map(() => 0)
    this.#placing = this.#available.map(() => 0)
  }

  get available(): readonly number[] {
    return this.#available
  }

  get total(): number {
    let total = 0
    for (const count of this.#available) total += count
    return total
  }

  get isEmpty(): boolean {
    for (const count of this.#available) if (count > 0) return false
    return true
  }

  /** Items became available. */
  gain(partition: number, count: number): void {
    add(this.#available, partition, count)
    add(this.#gained, partition, count)
  }

  /** They went, by somebody else's doing. */
  lose(partition: number, count: number): void {
    add(this.#available, partition, -count)
  }

  /** Those that are there are not to be leased. */
  forget(partition: number): void {
    this.#available[partition] = 0
  }

  /** What the store is about to be asked for is not offered to others meanwhile. */
  claim(partition: number, asked: number): Claim {
    const spokenFor = Math.min(asked, this.#available[partition] ?? 0)
    add(this.#available, partition, -spokenFor)
    add(this.#taken, partition, spokenFor)
    return { partition, asked, spokenFor }
  }

  /** The store was not able to say. */
  unclaim({ partition, spokenFor }: Claim): void {
    add(this.#available, partition, spokenFor)
    add(this.#taken, partition, -spokenFor)
  }

  asking(): Asked {
    return { gained: [...this.#gained], taken: [...this.#taken], looks: this.#looks }
  }

  /** Compares what was claimed with what there was. */
  book({ partition, asked, spokenFor }: Claim, count: number, before: Asked): void {
    const takenSince = (this.#taken[partition] ?? 0) - (before.taken[partition] ?? 0)
    const more = count - spokenFor
    add(this.#taken, partition, more)
    // A look meanwhile may have counted without these items already, or with others that came after.
    if (before.looks !== this.#looks) return
    if (count === asked) add(this.#available, partition, -more)
    // Fewer than asked for: there were no more, whatever the hint said.
    else this.#available[partition] = Math.max(this.#gainedSince(before.gained, partition) - takenSince, 0)
  }

  look(): readonly number[] {
    return [...this.#gained]
  }

  /** Too many is harmless, too few would leave items lying: what came since may be counted twice. */
  looked(counts: readonly Pick<PartitionCounts, 'partition' | 'waiting'>[], since: readonly number[]): void {
    for (const { partition, waiting } of counts)
      this.#available[partition] = waiting + this.#gainedSince(since, partition)
    this.#looks++
  }

  /** The partition with the fewest items that nobody holds, with those on their way; the lowest number among equals. */
  emptiest(): number {
    let best = 0
    let fewest = Number.POSITIVE_INFINITY
    for (let partition = 0; partition < this.#available.length; partition++) {
      const load = (this.#available[partition] ?? 0) + (this.#placing[partition] ?? 0)
      if (load < fewest) {
        best = partition
        fewest = load
      }
    }
    return best
  }

  /** So many are on their way to a partition; fewer than none: so many have arrived, or never will. */
  place(partition: number, count: number): void {
    add(this.#placing, partition, count)
  }

  #gainedSince(gained: readonly number[], partition: number): number {
    return (this.#gained[partition] ?? 0) - (gained[partition] ?? 0)
  }
}

function add(counts: number[], partition: number, by: number): void {
  counts[partition] = Math.max((counts[partition] ?? 0) + by, 0)
}
