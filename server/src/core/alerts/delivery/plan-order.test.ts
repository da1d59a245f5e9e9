import { describe, expect, it } from 'vitest'
import { planOrder } from './plan-order.ts'

const now = 1_000_000_000
const second = 1_000_000
const item = (rootId: string, channel = 'a') => ({ rootId, channel })
const queued = (rootId: string, channel = 'a', availableAt: number | null = null) => ({
  rootId,
  channel,
  availableAt,
})
const plan = (leased: readonly ReturnType<typeof item>[], all: readonly ReturnType<typeof queued>[]) => {
  const { lanes, postponed } = planOrder(leased, all, now)
  return {
    lanes: lanes.map((lane) => lane.map(({ rootId }) => rootId)),
    postponed: postponed.map(({ item: { rootId }, until }) => [rootId, until]),
  }
}

describe('the order of notifications', () => {
  it('each channel has a lane, oldest first', () => {
    const leased = [item('3'), item('1'), item('2', 'b')]
    expect(
      plan(
        leased,
        leased.map(({ rootId, channel }) => queued(rootId, channel)),
      ),
    ).toEqual({
      lanes: [['1', '3'], ['2']],
      postponed: [],
    })
  })

  it('a notification waits until an older one that is retried is due', () => {
    const all = [queued('1', 'a', now + 60 * second), queued('2')]
    expect(plan([item('2')], all)).toEqual({ lanes: [], postponed: [['2', now + 60 * second]] })
  })

  it('a notification waits a second for an older one that another server sends', () => {
    expect(plan([item('2')], [queued('1'), queued('2')])).toEqual({
      lanes: [],
      postponed: [['2', now + second]],
    })
  })

  it('only the notifications in front of a gap are sent', () => {
    const all = [queued('1'), queued('2'), queued('3'), queued('4')]
    expect(plan([item('1'), item('2'), item('4')], all)).toEqual({
      lanes: [['1', '2']],
      postponed: [['4', now + second]],
    })
  })

  it('a notification that waits does not block another channel', () => {
    const all = [queued('1', 'a', now + 60 * second), queued('2'), queued('3', 'b')]
    expect(plan([item('2'), item('3', 'b')], all).lanes).toEqual([['3']])
  })
})
