import { describe, expect, it } from 'vitest'
import { assignItems } from './assign-items.ts'

const waiter = (clientId: string, countMax: number) => ({ clientId, countMax })
const shown = (assignments: ReturnType<typeof assignItems>) =>
  assignments.map(
    ({ partition, recipients }) => `${partition}: ${recipients.map(({ clientId }) => clientId).join('')}`,
  )

describe('assigning items to waiting leases', () => {
  it('an assignment gives one item at a time, in turn, to each lease that wants more', () => {
    expect(shown(assignItems([waiter('a', 3), waiter('b', 1), waiter('c', 2)], [10], 100))).toEqual([
      '0: abcaca',
    ])
  })

  it('an assignment serves each lease from the partition with the most unplanned items', () => {
    expect(shown(assignItems([waiter('a', 2), waiter('b', 2), waiter('c', 1)], [3, 5, 0], 100))).toEqual([
      '1: aca',
      '0: bb',
    ])
  })

  it('with more leases than items, several leases share a partition', () => {
    expect(shown(assignItems([waiter('a', 1), waiter('b', 1), waiter('c', 1)], [0, 1], 100))).toEqual([
      '1: abc',
    ])
  })

  it('an assignment is empty without items or without leases', () => {
    expect(assignItems([waiter('a', 1)], [0, 0], 100)).toEqual([])
    expect(assignItems([], [5], 100)).toEqual([])
  })

  it('an assignment takes at most the given number of items of a partition', () => {
    expect(assignItems([waiter('a', 1_000), waiter('b', 1_000)], [5_000], 10)[0]?.recipients).toHaveLength(10)
  })
})
