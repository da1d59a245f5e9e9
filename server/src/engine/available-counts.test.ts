import { describe, expect, it } from 'vitest'
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
    stock.book(more, 4, stock.asking())
    expect(stock.available).toEqual([0])
    stock.gain(0, 10)
    const fewer = stock.claim(0, 4)
    const asked = stock.asking()
    stock.gain(0, 3)
    stock.book(fewer, 1, asked)
    // Of the ten only one was there; what came after the store was asked is still to be had.
    expect(stock.available).toEqual([3])
  })

  it('keeps what came while the store was looked at, and what a lease that was asked before cannot know', () => {
    const stock = new Stock(1, [0])
    const since = stock.look()
    stock.gain(0, 2)
    const claim = stock.claim(0, 1)
    const asked = stock.asking()
    stock.looked([{ partition: 0, waiting: 7 }], since)
    expect(stock.available).toEqual([9])
    stock.book(claim, 0, asked)
    expect(stock.available).toEqual([9])
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
