import { describe, expect, it } from 'vitest'
import { deal } from './assign-items.ts'

const waiter = (clientId: string, countMax: number) => ({ clientId, countMax })
const shown = (hands: ReturnType<typeof deal>) =>
  hands.map(({ partition, turns }) => `${partition}: ${turns.map(({ clientId }) => clientId).join('')}`)

describe('dealing items to waiting leases', () => {
  it('gives one at a time, in turn, to each that is not yet full', () => {
    expect(shown(deal([waiter('a', 3), waiter('b', 1), waiter('c', 2)], [10], 100))).toEqual(['0: abcaca'])
  })

  it('serves each from the partition with the most items not yet spoken for', () => {
    expect(shown(deal([waiter('a', 2), waiter('b', 2), waiter('c', 1)], [3, 5, 0], 100))).toEqual([
      '1: aca',
      '0: bb',
    ])
  })

  it('lets more leases than items share the partition that has them', () => {
    expect(shown(deal([waiter('a', 1), waiter('b', 1), waiter('c', 1)], [0, 1], 100))).toEqual(['1: abc'])
  })

  it('deals nothing where there is nothing', () => {
    expect(deal([waiter('a', 1)], [0, 0], 100)).toEqual([])
    expect(deal([], [5], 100)).toEqual([])
  })

  it('is bounded', () => {
    expect(deal([waiter('a', 1_000), waiter('b', 1_000)], [5_000], 10)[0]?.turns).toHaveLength(10)
  })
})
