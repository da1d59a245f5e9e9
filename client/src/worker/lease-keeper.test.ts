import { describe, expect, it } from 'vitest'
import { aHeldItem } from '../../test/held-item.ts'
import { ManualClock } from '../../test/manual-clock.ts'
import { RedriveError } from '../error.ts'
import type { HeldItem } from './held-item.ts'
import { LeaseKeeper } from './lease-keeper.ts'

const refused = (code: string, itemId: string | null = null, status = 404) =>
  new RedriveError({ code, status, message: code, hint: '', itemId })

/** Extends by a minute, unless the test says what goes wrong with these ids. */
function aKeeper(failure: (ids: readonly string[]) => unknown = () => undefined, isExtending = true) {
  const clock = new ManualClock()
  const lost: HeldItem[] = []
  const errors: unknown[] = []
  const calls: { atMs: number; partition: number; ids: readonly string[] }[] = []
  const keeper = new LeaseKeeper({
    client: {
      extend: async (_, partition, ids) => {
        calls.push({ atMs: clock.elapsedMs(), partition, ids })
        const error = failure(ids)
        if (error !== undefined) throw error
        return { leaseDeadline: '', leaseMsLeft: 60_000 }
      },
    },
    clock,
    queue: 'q',
    isExtending,
    onLost: (held) => void lost.push(held),
    onError: (error) => void errors.push(error),
  })
  return { keeper, clock, lost, errors, calls }
}

describe('the leases of items that are worked on', () => {
  it('are extended at half of their time, again and again, together per partition', async () => {
    const { keeper, clock, calls, lost } = aKeeper()
    const [a, b, c] = [aHeldItem(1), aHeldItem(2), aHeldItem(3, { partition: 1 })]
    keeper.add([a, b, c])
    await clock.advance(29_000)
    expect(calls).toEqual([])
    await clock.advance(1_000)
    expect(calls).toEqual([
      { atMs: 30_000, partition: 0, ids: [a.item.id, b.item.id] },
      { atMs: 30_000, partition: 1, ids: [c.item.id] },
    ])
    keeper.remove(b)
    keeper.remove(c)
    await clock.advance(300_000)
    expect(calls.slice(2).map(({ atMs, ids }) => [atMs, ...ids])).toEqual(
      [60_000, 90_000, 120_000, 150_000, 180_000, 210_000, 240_000, 270_000, 300_000, 330_000].map((atMs) => [
        atMs,
        a.item.id,
      ]),
    )
    expect(lost).toEqual([])
    keeper.remove(a)
    expect(clock.timers).toBe(0)
  })

  it('are lost when the server says so, and only those', async () => {
    const gone = aHeldItem(2)
    const { keeper, clock, lost, errors, calls } = aKeeper((ids) =>
      ids.includes(gone.item.id) ? refused('ITEM_NOT_FOUND', gone.item.id) : undefined,
    )
    keeper.add([aHeldItem(1), gone, aHeldItem(3)])
    await clock.advance(50_000)
    expect(lost).toEqual([gone])
    expect(errors).toEqual([])
    expect(calls.map(({ ids }) => ids.length)).toEqual([3, 2])
    await clock.advance(100_000)
    expect(lost).toEqual([gone])
    keeper.close()
    expect(clock.timers).toBe(0)
  })

  it('are asked for again while there is time, then lost', async () => {
    const { keeper, clock, lost, errors, calls } = aKeeper(() => refused('CONNECTION_REFUSED', null, 0))
    const held = aHeldItem(1)
    keeper.add([held])
    await clock.advance(59_900)
    expect(calls.length).toBeGreaterThan(4)
    expect(calls.length).toBeLessThan(20)
    expect(errors).toHaveLength(calls.length)
    expect(lost).toEqual([])
    await clock.advance(200)
    expect(lost).toEqual([held])
    expect(clock.timers).toBe(0)
  })

  it.each([refused('NOT_FOUND'), refused('UNKNOWN', null, 404)])(
    'just end when the server cannot extend, which is asked once (%s)',
    async (error) => {
      const { keeper, clock, lost, errors, calls } = aKeeper(() => error)
      const [a, b] = [aHeldItem(1), aHeldItem(2, { leaseEndsAtMs: 100_000 })]
      keeper.add([a, b])
      await clock.advance(60_000)
      expect(lost).toEqual([a])
      await clock.advance(60_000)
      expect(lost).toEqual([a, b])
      expect(calls).toHaveLength(1)
      expect(errors).toEqual([])
    },
  )

  it('end when nobody wants them extended', async () => {
    const { keeper, clock, lost, calls } = aKeeper(undefined, false)
    keeper.add([aHeldItem(1)])
    await clock.advance(60_000)
    expect(calls).toEqual([])
    expect(lost).toHaveLength(1)
  })
})
