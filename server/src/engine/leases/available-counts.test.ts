import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { AvailableCounts } from './available-counts.ts'

describe('available counts', () => {
  it('claimed items are not offered to other leases, unless the claim is cancelled', () => {
    const counts = new AvailableCounts(2, [5, 1])
    const claim = counts.claim(0, 3)
    expect(counts.byPartition).toEqual([2, 1])
    counts.cancel(claim)
    expect(counts.byPartition).toEqual([5, 1])
  })

  it('a lease that got more or fewer items than expected corrects the count', () => {
    const counts = new AvailableCounts(1, [2])
    const more = counts.claim(0, 4)
    expect(more.expected).toBe(2)
    counts.settle(more, 4, false)
    expect(counts.byPartition).toEqual([0])
    counts.add(0, 10)
    const fewer = counts.claim(0, 4)
    counts.add(0, 3)
    counts.settle(fewer, 1, true)
    // Only one of the ten was there; the three items that came after the claim are still available.
    expect(counts.byPartition).toEqual([3])
  })

  it('a recount replaces the count of a partition that nothing changed in the meantime', () => {
    const counts = new AvailableCounts(2, [5, 0])
    const claim = counts.claim(0, 1)
    counts.settle(claim, 1, false)
    const started = counts.startRecount()
    counts.finishRecount(
      [
        { partition: 0, waiting: 3 },
        { partition: 1, waiting: 7 },
      ],
      started,
    )
    expect(counts.byPartition).toEqual([3, 7])
  })

  it.each([
    ['before', 11],
    ['after', 1],
  ])('a recount that the store does %s a lease in progress does not change the count', (_, waiting) => {
    const counts = new AvailableCounts(1, [11])
    const claim = counts.claim(0, 10)
    counts.finishRecount([{ partition: 0, waiting }], counts.startRecount())
    counts.settle(claim, 10, false)
    expect(counts.byPartition).toEqual([1])

    const started = counts.startRecount()
    const short = counts.claim(0, 1)
    counts.settle(short, 1, false)
    counts.finishRecount([{ partition: 0, waiting: waiting > 1 ? 1 : 0 }], started)
    expect(counts.byPartition).toEqual([0])
  })

  it('a recount does not count items twice that are being stored or were stored in the meantime', () => {
    const counts = new AvailableCounts(1, [0])
    const started = counts.startRecount()
    counts.add(0, 2)
    counts.finishRecount([{ partition: 0, waiting: 2 }], started)
    expect(counts.byPartition).toEqual([2])

    counts.addInFlight(0, 3)
    counts.finishRecount([{ partition: 0, waiting: 5 }], counts.startRecount())
    counts.addInFlight(0, -3)
    counts.add(0, 3)
    expect(counts.byPartition).toEqual([5])
  })

  it('a recount finds items of another server also while a lease is in progress', () => {
    const counts = new AvailableCounts(1, [4])
    const claim = counts.claim(0, 4)
    counts.finishRecount([{ partition: 0, waiting: 10 }], counts.startRecount())
    expect(counts.byPartition).toEqual([6])
    counts.settle(claim, 4, false)
    expect(counts.byPartition).toEqual([6])
  })

  it('a count is never too low once all answers have arrived, in whatever order the store works', () => {
    const step = fc.tuple(fc.constantFrom('store', 'lease', 'recount', 'continue', 'continue'), fc.nat(1_000))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.array(fc.nat(1_000)), (steps, rest) => {
        const store = new SimulatedStore()
        for (const [what, choice] of steps) store.step(what, choice)
        for (let turn = 0; store.isBusy; turn++) store.step('continue', rest[turn] ?? 0)
        expect(store.counts.byPartition[0]).toBeGreaterThanOrEqual(store.waiting)
        // A count that is too high is corrected by a lease that finds nothing.
        store.leaseAll()
        expect([store.waiting, store.counts.total]).toEqual([0, 0])
      }),
      { numRuns: 5_000 },
    )
  })

  it('the least loaded partition has the fewest available and in-flight items', () => {
    const counts = new AvailableCounts(3, [4, 2, 3])
    expect(counts.chooseLeastLoadedPartition()).toBe(1)
    counts.addInFlight(1, 2)
    expect(counts.chooseLeastLoadedPartition()).toBe(2)
    counts.addInFlight(1, -2)
    expect(counts.chooseLeastLoadedPartition()).toBe(1)
  })
})

type Call = { isDone: boolean; work(): void; answer(): void }

/** A store with one partition that works and answers in the order that a test chooses. */
class SimulatedStore {
  readonly counts = new AvailableCounts(1, [0])
  waiting = 0
  readonly #calls: Call[] = []
  #leases = 0

  get isBusy(): boolean {
    return this.#calls.length > 0
  }

  step(what: 'store' | 'lease' | 'recount' | 'continue', choice: number): void {
    if (what === 'store') this.#store(1 + (choice % 2))
    else if (what === 'lease') this.#lease(1 + (choice % 4), Math.floor(choice / 4))
    else if (what === 'recount') this.#recount()
    else this.#continue(choice)
  }

  leaseAll(): void {
    while (!this.counts.isEmpty) {
      this.#lease(3, 1)
      while (this.isBusy) this.#continue(0)
    }
  }

  /** Each call first does its work; some time later its answer arrives. */
  #continue(choice: number): void {
    const at = choice % Math.max(this.#calls.length, 1)
    const call = this.#calls[at]
    if (call === undefined) return
    if (!call.isDone) {
      call.isDone = true
      call.work()
      return
    }
    this.#calls.splice(at, 1)
    call.answer()
  }

  #call(work: () => void, answer: () => void): void {
    this.#calls.push({ isDone: false, work, answer })
  }

  #store(count: number): void {
    this.#call(
      () => {
        this.waiting += count
      },
      () => this.counts.add(0, count),
    )
  }

  /** Some leases fail, and some clients leave, so that their items are put back. */
  #lease(asked: number, choice: number): void {
    if (this.counts.isEmpty || this.#leases === 2) return
    this.#leases++
    const claim = this.counts.claim(0, asked)
    const isFailing = choice % 5 === 0
    let count = 0
    this.#call(
      () => {
        if (!isFailing) count = Math.min(asked, this.waiting)
        this.waiting -= count
      },
      () => {
        this.#leases--
        if (isFailing) this.counts.cancel(claim)
        else this.counts.settle(claim, count, count < asked)
        if (count > 0 && choice % 3 === 0) this.#store(count)
      },
    )
  }

  #recount(): void {
    const started = this.counts.startRecount()
    let waiting = 0
    this.#call(
      () => {
        waiting = this.waiting
      },
      () => this.counts.finishRecount([{ partition: 0, waiting }], started),
    )
  }
}
