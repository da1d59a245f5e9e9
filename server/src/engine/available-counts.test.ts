import { describe, expect, it } from 'vitest'
import fc from '../../test/fast-check.ts'
import { Stock } from './available-counts.ts'

describe('the stock of a queue', () => {
  it('offers what is claimed to nobody else, and again when the store could not say', () => {
    const stock = new Stock(2, [5, 1])
    const claim = stock.claim(0, 3)
    expect(stock.available).toEqual([2, 1])
    stock.unclaim(claim)
    expect(stock.available).toEqual([5, 1])
  })

  it('believes the store when there were more or fewer than it thought', () => {
    const stock = new Stock(1, [2])
    const more = stock.claim(0, 4)
    expect(more.spokenFor).toBe(2)
    stock.book(more, 4, false)
    expect(stock.available).toEqual([0])
    stock.gain(0, 10)
    const fewer = stock.claim(0, 4)
    stock.gain(0, 3)
    stock.book(fewer, 1, true)
    // Of the ten only one was there; what came after the store was asked is still to be had.
    expect(stock.available).toEqual([3])
  })

  it('keeps what came while the store was looked at, and what a lease that was asked before cannot know', () => {
    const stock = new Stock(1, [0])
    const since = stock.look()
    stock.gain(0, 2)
    const claim = stock.claim(0, 1)
    stock.looked([{ partition: 0, waiting: 7 }], since)
    expect(stock.available).toEqual([9])
    stock.book(claim, 0, true)
    expect(stock.available).toEqual([9])
  })

  it('is never too low once all answers have arrived, in whatever order the store works and answers', () => {
    const step = fc.tuple(fc.constantFrom('store', 'lease', 'look', 'go on', 'go on'), fc.nat(1_000))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.array(fc.nat(1_000)), (steps, rest) => {
        const store = new Play()
        for (const [what, choice] of steps) store.step(what, choice)
        for (let turn = 0; store.isBusy; turn++) store.step('go on', rest[turn] ?? 0)
        expect(store.stock.available[0]).toBeGreaterThanOrEqual(store.waiting)
        // Too high corrects itself: each lease that finds nothing ends with no more than there is.
        store.leaseAll()
        expect([store.waiting, store.stock.total]).toEqual([0, 0])
      }),
      { numRuns: 5_000 },
    )
  })

  it('places new items where the fewest are or will be', () => {
    const stock = new Stock(3, [4, 2, 3])
    expect(stock.emptiest()).toBe(1)
    stock.place(1, 2)
    expect(stock.emptiest()).toBe(2)
    stock.place(1, -2)
    expect(stock.emptiest()).toBe(1)
  })
})

type Call = { isDone: boolean; work(): void; answer(): void }

/** A store with one partition that works and answers in the order that a test chooses, and an engine that asks it. */
class Play {
  readonly stock = new Stock(1, [0])
  waiting = 0
  readonly #calls: Call[] = []
  #leases = 0

  get isBusy(): boolean {
    return this.#calls.length > 0
  }

  step(what: 'store' | 'lease' | 'look' | 'go on', choice: number): void {
    if (what === 'store') this.#store(1 + (choice % 2))
    else if (what === 'lease') this.#lease(1 + (choice % 4), Math.floor(choice / 4))
    else if (what === 'look') this.#look()
    else this.#goOn(choice)
  }

  leaseAll(): void {
    while (!this.stock.isEmpty) {
      this.#lease(3, 1)
      while (this.isBusy) this.#goOn(0)
    }
  }

  /** Each call first does its work, some time later its answer arrives. */
  #goOn(choice: number): void {
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
      () => this.stock.gain(0, count),
    )
  }

  /** Some leases fail, and of some the client leaves, so that its items are put back. */
  #lease(asked: number, choice: number): void {
    if (this.stock.isEmpty || this.#leases === 2) return
    this.#leases++
    const claim = this.stock.claim(0, asked)
    const isFailing = choice % 5 === 0
    let count = 0
    this.#call(
      () => {
        if (!isFailing) count = Math.min(asked, this.waiting)
        this.waiting -= count
      },
      () => {
        this.#leases--
        if (isFailing) this.stock.unclaim(claim)
        else this.stock.book(claim, count, count < asked)
        if (count > 0 && choice % 3 === 0) this.#store(count)
      },
    )
  }

  #look(): void {
    const since = this.stock.look()
    let waiting = 0
    this.#call(
      () => {
        waiting = this.waiting
      },
      () => this.stock.looked([{ partition: 0, waiting }], since),
    )
  }
}
