/**
 * Serves the leases that wait for items of one queue: asks the store, deals what it gives, and puts back what nobody
 * is there for any more.
 */
import { type Instant, later } from '../core/instant.ts'
import type { Leased } from '../core/item.ts'
import type { Queue } from '../core/queue.ts'
import { isExpired } from '../core/transitions.ts'
import { stepBytesMax } from '../storage/shared/byte-budget.ts'
import { deal, type Hand } from './assign-items.ts'
import type { Claim, Stock } from './available-counts.ts'
import type { LeaseWaiters, Leasing } from './lease-waiters.ts'
import type { RoomParts } from './queue-runtime-parts.ts'
import { whenUnknown } from './rejected-batch.ts'

/** What the store is asked for of one partition. */
type Plan = Readonly<{ claim: Claim; turns: readonly Leasing[] }>

const dealtMax = 4_000
/**
 * What the payloads of a deal should be together, if they are like those of the last one. A hundred items of 16 MiB asked
 * for at once take longer than callers wait, again and again: whoever leases in large batches would never get any.
 */
const dealtBytes = stepBytesMax
const dealtMin = 4
/** One is written while the answers to the other go out, and their callers come back. */
const dealsMax = 2
/** Fewer are not worth dividing among two. */
const shareMin = 128

export class Dealer {
  readonly #queue: () => Queue
  readonly #waiters: LeaseWaiters
  readonly #stock: Stock
  readonly #parts: RoomParts
  readonly #arrivalMax: () => number
  readonly #deals = new Set<Promise<void>>()
  #turnsMax = dealtMax
  #isWaking = false
  #puttingBack: Promise<unknown> = Promise.resolve()

  /** `arrivalMax`: who came later waits for a turn. */
  constructor(
    queue: () => Queue,
    waiters: LeaseWaiters,
    stock: Stock,
    parts: RoomParts,
    arrivalMax: () => number,
  ) {
    this.#queue = queue
    this.#waiters = waiters
    this.#stock = stock
    this.#parts = parts
    this.#arrivalMax = arrivalMax
  }

  /** Serves waiting leases if there is something for them. */
  wake(): void {
    if (this.#isWaking || this.#waiters.size === 0 || this.#deals.size >= dealsMax) return
    if (this.#stock.isEmpty) return
    this.#isWaking = true
    // Those of the same turn of the event loop go together.
    void Promise.resolve().then(() => {
      this.#isWaking = false
      this.#start()
    })
  }

  /** Serves those whose turn has come, with what there is for them now. */
  async serveNow(): Promise<void> {
    this.#start()
    while (this.#deals.size > 0) await Promise.all(this.#deals)
  }

  /** Resolves when what is being dealt is dealt, or put back. */
  async whenIdle(): Promise<void> {
    await Promise.all(this.#deals)
    await this.#puttingBack
  }

  #start(): void {
    while (this.#deals.size < dealsMax && this.#startOne());
  }

  /** False when there is nobody to serve, or nothing to serve with. */
  #startOne(): boolean {
    if (this.#queue().isPaused) return false
    const next = this.#waiters.next(dealsMax, shareMin, this.#arrivalMax(), this.#stock.total)
    const hands = this.#within(deal(next, this.#stock.available, this.#turnsMax))
    if (hands.length === 0) return false
    const plans = hands.map(({ partition, turns }) => {
      for (const leasing of turns) leasing.isServed = true
      return { claim: this.#stock.claim(partition, turns.length), turns }
    })
    const dealing = this.#deal(plans).then(() => {
      this.#deals.delete(dealing)
      // Who arrived meanwhile, or was left with nothing, may have a turn now.
      this.wake()
    })
    this.#deals.add(dealing)
    return true
  }

  async #deal(plans: readonly Plan[]): Promise<void> {
    const { writer, clock, batchMsMax } = this.#parts
    const { name, leaseUs } = this.#queue()
    const now = clock.now()
    const late = whenUnknown(batchMsMax, (error) => {
      // What they are given after all is put back.
      for (const { turns } of plans) for (const leasing of turns) this.#waiters.refuse(leasing, error)
      const asked = plans.reduce((sum, { turns }) => sum + turns.length, 0)
      // So few are never too large: then the store itself is stuck.
      if (asked > dealtMin) {
        this.#turnsMax = Math.max(dealtMin, Math.min(this.#turnsMax, Math.floor(asked / 4)))
      }
    })
    try {
      const results = await writer.write(
        plans.map(({ claim: { partition }, turns }) => ({
          op: 'lease' as const,
          queue: name,
          partition,
          holders: turns.map(({ clientId }) => clientId),
          now,
        })),
      )
      this.#parts.onDue(later(now, leaseUs))
      for (const [index, plan] of plans.entries()) {
        const items = results[index] ?? []
        // An answer ends at so many bytes: then the partition may have more.
        const isEmptied = items.length < plan.claim.asked && bytesOf(items) < stepBytesMax
        this.#stock.book(plan.claim, items.length, isEmptied)
        this.#serve(plan, items, now)
      }
      this.#learn(results)
    } catch (error) {
      this.#parts.onRefused(error)
      // The store failed: those who were to be served are told, and may ask again.
      for (const { claim, turns } of plans) {
        this.#stock.unclaim(claim)
        for (const leasing of turns) this.#waiters.refuse(leasing, error)
      }
    } finally {
      late.off()
    }
  }

  /** Of large items as many as are asked for at once, whichever partitions they are in. */
  #within(hands: readonly Hand<Leasing>[]): readonly Hand<Leasing>[] {
    if (this.#turnsMax === dealtMax) return hands
    let left = this.#turnsMax
    return hands.flatMap((hand) => {
      const turns = hand.turns.slice(0, left)
      left -= turns.length
      return turns.length === 0 ? [] : [{ ...hand, turns }]
    })
  }

  /** How many to ask for next. Four times as many as before at most: those may be larger. */
  #learn(dealt: readonly (readonly Leased[])[]): void {
    let [count, bytes] = [0, 0]
    for (const items of dealt) {
      count += items.length
      bytes += bytesOf(items)
    }
    if (count === 0) return
    const fitting = Math.floor((dealtBytes * count) / Math.max(bytes, 1))
    this.#turnsMax = Math.max(1, Math.min(fitting, 4 * this.#turnsMax, dealtMax))
  }

  #serve({ claim: { partition }, turns }: Plan, items: readonly Leased[], now: Instant): void {
    const unwanted: Leased[] = []
    const expired: Leased[] = []
    for (let index = 0; index < items.length; index++) {
      const item = items[index] as Leased
      const leasing = turns[index] as Leasing
      // Its time was over before anybody came for it, and the clockwork has not been here since.
      if (isExpired(item, now)) expired.push(item)
      else if (this.#waiters.isGone(leasing)) unwanted.push(item)
      else if (leasing.dealt === undefined) leasing.dealt = [item]
      else leasing.dealt.push(item)
    }
    for (const leasing of turns) leasing.isServed = false
    for (const leasing of turns) {
      const { dealt } = leasing
      if (dealt === undefined) continue
      leasing.dealt = undefined
      this.#waiters.serve(leasing, { partition, items: dealt })
    }
    if (unwanted.length > 0) {
      const back = this.#putBack(partition, unwanted).then((isBack) => {
        if (!isBack) return
        this.#stock.gain(partition, unwanted.length)
        this.wake()
      })
      this.#puttingBack = Promise.all([this.#puttingBack, back])
    }
    if (expired.length > 0) {
      // Nobody is to have them, nor to find them again and again: once they are taken away, what is there is counted.
      this.#stock.forget(partition)
      const back = this.#putBack(partition, expired).then(() => this.#parts.onDue(now))
      this.#puttingBack = Promise.all([this.#puttingBack, back])
    }
  }

  /** As if they had never been leased. */
  async #putBack(partition: number, items: readonly Leased[]): Promise<boolean> {
    const { writer, clock } = this.#parts
    const ids = items.map(({ id }) => id)
    try {
      await writer.write([{ op: 'unlease', queue: this.#queue().name, partition, ids, now: clock.now() }])
      return true
    } catch {
      // Their leases end by themselves, as if the client had gone a moment later.
      return false
    }
  }
}

function bytesOf(items: readonly Leased[]): number {
  let bytes = 0
  for (const { payload } of items) bytes += payload.length
  return bytes
}
