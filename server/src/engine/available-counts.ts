import type { PartitionCounts } from '../storage/contract/counts.ts'

/** Items of one partition that the store is asked for, until it answers. */
export type Claim = {
  readonly partition: number
  readonly asked: number
  /** How many of the asked items were counted as available. */
  readonly spokenFor: number
  /** Items that became available since, and that no later claim asks for. */
  fresh: number
  /** The number was replaced since: the answer to this claim does not change it any more. */
  isSuperseded: boolean
}

export class Stock {
  readonly #available: number[]
  /** How many became available since it was opened: what came while the store was asked is not in its answer. */
  readonly #gained: number[]
  /** Claims that the store has not answered yet, by partition. */
  readonly #claims: Claim[][]
  /** How many are being stored. */
  readonly #placing: number[]

  constructor(partitions: number, available: readonly number[]) {
    this.#available = Array.from({ length: partitions }, (_, partition) => available[partition] ?? 0)
    this.#gained = this.#available.map(() => 0)
    this.#claims = this.#available.map(() => [])
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
    for (const claim of this.#claims[partition] ?? []) claim.fresh += count
  }

  /** Those that are there are not to be leased. */
  forget(partition: number): void {
    this.#available[partition] = 0
  }

  /** Items that the store is about to be asked for are not offered to other leases. */
  claim(partition: number, asked: number): Claim {
    const spokenFor = Math.min(asked, this.#available[partition] ?? 0)
    add(this.#available, partition, -spokenFor)
    const claims = this.#claims[partition] ?? []
    for (const earlier of claims) earlier.fresh = Math.max(earlier.fresh - spokenFor, 0)
    const claim = { partition, asked, spokenFor, fresh: 0, isSuperseded: false }
    claims.push(claim)
    return claim
  }

  /** The store failed to answer, so the items may still be there. */
  unclaim(claim: Claim): void {
    this.#close(claim)
    this.gain(claim.partition, claim.spokenFor)
  }

  /** The store leased `count` items. `isEmptied`: fewer than asked, because the partition had no more. */
  book(claim: Claim, count: number, isEmptied: boolean): void {
    this.#close(claim)
    if (claim.isSuperseded) return
    const { partition, spokenFor, fresh } = claim
    if (isEmptied) this.#replace(partition, fresh)
    else add(this.#available, partition, spokenFor - count)
  }

  look(): readonly number[] {
    return [...this.#gained]
  }

  /** Too many is harmless, too few would leave items lying: what came since may be counted twice. */
  looked(counts: readonly Pick<PartitionCounts, 'partition' | 'waiting'>[], since: readonly number[]): void {
    for (const { partition, waiting } of counts) {
      const gainedSince = (this.#gained[partition] ?? 0) - (since[partition] ?? 0)
      this.#replace(partition, waiting + gainedSince)
    }
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

  #replace(partition: number, available: number): void {
    this.#available[partition] = available
    for (const claim of this.#claims[partition] ?? []) claim.isSuperseded = true
  }

  #close(claim: Claim): void {
    const claims = this.#claims[claim.partition] ?? []
    const at = claims.indexOf(claim)
    if (at >= 0) claims.splice(at, 1)
  }
}

function add(counts: number[], partition: number, by: number): void {
  counts[partition] = Math.max((counts[partition] ?? 0) + by, 0)
}
