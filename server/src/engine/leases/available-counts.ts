/**
 * How many items each partition of a queue has available to lease, as far as this server knows.
 *
 * The counts are a hint: a lease asks the store, and the store decides. A count that is too high costs one
 * lease that finds nothing. A count that is too low leaves items waiting although workers wait for them. So
 * with a single server no count may be too low once every answer of the store has arrived. Items that
 * another server stored are found by counting again in the store (`startRecount`, `finishRecount`).
 *
 * Answers arrive in any order, not in the order in which the store did the work. Therefore a count is only
 * lowered by facts that are certain whatever the order was:
 * - A lease that got all items it asked for took exactly that many.
 * - A lease that got fewer found the partition empty at some moment after its claim. Items that became
 *   available since the claim may still be there, except those that later claims ask for (`Claim.fresh`).
 *   This replaces the count. Leases with an older claim are accounted for by that (`Claim.isSuperseded`):
 *   to subtract their items again would subtract items that came later.
 *
 * A recount replaces the count of a partition only if no call of this server changed the partition during
 * the recount. Otherwise the store may have counted before or after that call. Then the recount can only
 * raise the count, to the number of items that are available in any case.
 */
import type { PartitionCounts } from '../../storage/contract/counts.ts'

/** Items of one partition that the store is asked for, until it answers. */
export type Claim = {
  readonly partition: number
  readonly asked: number
  /** How many of the asked items were counted as available. */
  readonly expected: number
  /** Items that became available since the claim, and that no later claim asks for. */
  fresh: number
  /** The count was replaced since the claim, so the answer to this claim no longer changes it. */
  isSuperseded: boolean
}

/** The state of each partition when a recount started. */
export type Recount = readonly Readonly<{ gained: number; claimed: number; claimsOpen: number }>[]

export class AvailableCounts {
  readonly #available: number[]
  /** How many items became available since the queue was opened. */
  readonly #gained: number[]
  /** How many items were asked for since the queue was opened. */
  readonly #claimed: number[]
  /** Claims that the store has not answered yet, by partition. */
  readonly #claims: Claim[][]
  /** How many items are being stored. */
  readonly #inFlight: number[]

  constructor(partitions: number, available: readonly number[]) {
    this.#available = Array.from({ length: partitions }, (_, partition) => available[partition] ?? 0)
    this.#gained = this.#available.map(() => 0)
    this.#claimed = this.#available.map(() => 0)
    this.#claims = this.#available.map(() => [])
    this.#inFlight = this.#available.map(() => 0)
  }

  get byPartition(): readonly number[] {
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

  /** Counts items that became available. */
  add(partition: number, count: number): void {
    increase(this.#available, partition, count)
    increase(this.#gained, partition, count)
    for (const claim of this.#claims[partition] ?? []) claim.fresh += count
  }

  /** For a partition whose items must not be leased. */
  clear(partition: number): void {
    this.#available[partition] = 0
  }

  /** Reserves items that the store is about to be asked for, so that other leases are not promised them. */
  claim(partition: number, asked: number): Claim {
    const expected = Math.min(asked, this.#available[partition] ?? 0)
    increase(this.#available, partition, -expected)
    const claims = this.#claims[partition] ?? []
    for (const earlier of claims) earlier.fresh = Math.max(earlier.fresh - expected, 0)
    const claim = { partition, asked, expected, fresh: 0, isSuperseded: false }
    claims.push(claim)
    increase(this.#claimed, partition, asked)
    return claim
  }

  /** The store failed to answer, so the items may still be there. */
  cancel(claim: Claim): void {
    this.#close(claim)
    this.add(claim.partition, claim.expected)
  }

  /** The store leased `count` items. `isEmptied`: fewer than asked, because the partition had no more. */
  settle(claim: Claim, count: number, isEmptied: boolean): void {
    this.#close(claim)
    if (claim.isSuperseded) return
    const { partition, expected, fresh } = claim
    if (isEmptied) this.#replace(partition, fresh)
    else increase(this.#available, partition, expected - count)
  }

  /** Call before the counts are read from the store. */
  startRecount(): Recount {
    return this.#gained.map((gained, partition) => ({
      gained,
      claimed: this.#claimed[partition] ?? 0,
      claimsOpen: sumAsked(this.#claims[partition] ?? []),
    }))
  }

  finishRecount(counts: readonly Pick<PartitionCounts, 'partition' | 'waiting'>[], started: Recount): void {
    for (const { partition, waiting } of counts) {
      const { gained = 0, claimed = 0, claimsOpen = 0 } = started[partition] ?? {}
      // Items that the store may have leased after it counted them.
      const leasedMax = claimsOpen + (this.#claimed[partition] ?? 0) - claimed
      // Items that the store may have counted already, and that are added when the store answers.
      const storedMax = this.#inFlight[partition] ?? 0
      const hasGained = (this.#gained[partition] ?? 0) > gained
      if (leasedMax === 0 && storedMax === 0 && !hasGained) this.#replace(partition, waiting)
      else {
        const missing = waiting - leasedMax - storedMax - (this.#available[partition] ?? 0)
        if (missing > 0) this.add(partition, missing)
      }
    }
  }

  /**
   * The partition with the fewest available and in-flight items; of several the one with the lowest number.
   */
  chooseLeastLoadedPartition(): number {
    let best = 0
    let fewest = Number.POSITIVE_INFINITY
    for (let partition = 0; partition < this.#available.length; partition++) {
      const load = (this.#available[partition] ?? 0) + (this.#inFlight[partition] ?? 0)
      if (load < fewest) {
        best = partition
        fewest = load
      }
    }
    return best
  }

  /** Adds `count` in-flight items; a negative count removes them. */
  addInFlight(partition: number, count: number): void {
    increase(this.#inFlight, partition, count)
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

function sumAsked(claims: readonly Claim[]): number {
  let sum = 0
  for (const { asked } of claims) sum += asked
  return sum
}

function increase(counts: number[], partition: number, by: number): void {
  counts[partition] = Math.max((counts[partition] ?? 0) + by, 0)
}
