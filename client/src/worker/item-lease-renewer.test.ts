import { describe, expect, it } from 'vitest'
import { createActiveItem } from '../../test/create-active-item.ts'
import { ManualClock } from '../../test/manual-clock.ts'
import { RedriveError } from '../http/error.ts'
import type { ActiveItem } from './active-item.ts'
import { ItemLeaseRenewer } from './item-lease-renewer.ts'

const refused = (code: string, itemId: string | null = null, status = 404) =>
  new RedriveError({ code, status, message: code, hint: '', itemId })

/** Each extension lasts a minute, unless `failure` returns an error for the ids of the call. */
function createRenewer(failure: (ids: readonly string[]) => unknown = () => undefined, isExtending = true) {
  const clock = new ManualClock()
  const lost: ActiveItem[] = []
  const errors: unknown[] = []
  const calls: { atMs: number; partition: number; ids: readonly string[] }[] = []
  const renewer = new ItemLeaseRenewer({
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
    onLost: (active) => void lost.push(active),
    onError: (error) => void errors.push(error),
  })
  return { renewer, clock, lost, errors, calls }
}

describe('ItemLeaseRenewer', () => {
  it('the renewer extends leases repeatedly at half of their time, with one call per partition', async () => {
    const { renewer, clock, calls, lost } = createRenewer()
    const [a, b, c] = [createActiveItem(1), createActiveItem(2), createActiveItem(3, { partition: 1 })]
    renewer.add([a, b, c])
    await clock.advance(29_000)
    expect(calls).toEqual([])
    await clock.advance(1_000)
    expect(calls).toEqual([
      { atMs: 30_000, partition: 0, ids: [a.item.id, b.item.id] },
      { atMs: 30_000, partition: 1, ids: [c.item.id] },
    ])
    renewer.remove(b)
    renewer.remove(c)
    await clock.advance(300_000)
    expect(calls.slice(2).map(({ atMs, ids }) => [atMs, ...ids])).toEqual(
      [60_000, 90_000, 120_000, 150_000, 180_000, 210_000, 240_000, 270_000, 300_000, 330_000].map((atMs) => [
        atMs,
        a.item.id,
      ]),
    )
    expect(lost).toEqual([])
    renewer.remove(a)
    expect(clock.timers).toBe(0)
  })

  it('an item that the server reports as missing is lost, and the others are extended', async () => {
    const gone = createActiveItem(2)
    const { renewer, clock, lost, errors, calls } = createRenewer((ids) =>
      ids.includes(gone.item.id) ? refused('ITEM_NOT_FOUND', gone.item.id) : undefined,
    )
    renewer.add([createActiveItem(1), gone, createActiveItem(3)])
    await clock.advance(50_000)
    expect(lost).toEqual([gone])
    expect(errors).toEqual([])
    expect(calls.map(({ ids }) => ids.length)).toEqual([3, 2])
    await clock.advance(100_000)
    expect(lost).toEqual([gone])
    renewer.close()
    expect(clock.timers).toBe(0)
  })

  it('a failed extension is repeated until the lease ends; then the item is lost', async () => {
    const { renewer, clock, lost, errors, calls } = createRenewer(() =>
      refused('CONNECTION_REFUSED', null, 0),
    )
    const active = createActiveItem(1)
    renewer.add([active])
    await clock.advance(59_900)
    expect(calls.length).toBeGreaterThan(4)
    expect(calls.length).toBeLessThan(20)
    expect(errors).toHaveLength(calls.length)
    expect(lost).toEqual([])
    await clock.advance(200)
    expect(lost).toEqual([active])
    expect(clock.timers).toBe(0)
  })

  it.each([refused('NOT_FOUND'), refused('UNKNOWN', null, 404)])(
    'leases end at their deadline, after one call, if the server cannot extend them (%s)',
    async (error) => {
      const { renewer, clock, lost, errors, calls } = createRenewer(() => error)
      const [a, b] = [createActiveItem(1), createActiveItem(2, { leaseEndsAtMs: 100_000 })]
      renewer.add([a, b])
      await clock.advance(60_000)
      expect(lost).toEqual([a])
      await clock.advance(60_000)
      expect(lost).toEqual([a, b])
      expect(calls).toHaveLength(1)
      expect(errors).toEqual([])
    },
  )

  it('leases end at their deadline, without a call, if isExtending is false', async () => {
    const { renewer, clock, lost, calls } = createRenewer(undefined, false)
    renewer.add([createActiveItem(1)])
    await clock.advance(60_000)
    expect(calls).toEqual([])
    expect(lost).toHaveLength(1)
  })
})
