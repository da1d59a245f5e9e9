import { describe, expect, it } from 'vitest'
import { manualTimers } from '../../test/vault/manual-timers.ts'
import { createLeaseKeeper, type Grant } from './lease-keeper.ts'

const minute = 60_000
const hour = 60 * minute

/** A lease of an hour that can be renewed up to `maxMs` after it was taken. */
function leasing(maxMs = 24 * hour) {
  const timers = manualTimers()
  const log: string[] = []
  const trouble: string[] = []
  const state = { acquireError: null as unknown, renewError: null as unknown, isDoomed: false }
  let count = 0
  let takenAtMs = 0

  const keeper = createLeaseKeeper<string>(
    {
      acquire: async () => {
        if (state.acquireError !== null) throw state.acquireError
        takenAtMs = timers.nowMs()
        log.push(`acquire ${++count}`)
        return { value: `lease ${count}`, leaseMs: Math.min(hour, maxMs), isRenewable: true }
      },
      renew: async (grant: Grant<string>) => {
        if (state.renewError !== null) throw state.renewError
        log.push(`renew ${grant.value}`)
        return { ...grant, leaseMs: Math.min(hour, takenAtMs + maxMs - timers.nowMs()) }
      },
      isTemporary: (error) => error === 'away',
      isSame: (one, other) => one === other,
      isDoomed: () => state.isDoomed && count === 1,
      onNotRenewed: (error) => log.push(`not renewed: ${error}`),
      onTrouble: (error, isUsable) => trouble.push(`${error} ${isUsable ? 'usable' : 'unusable'}`),
    },
    timers,
  )
  const replaced: string[] = []
  keeper.onReplaced((value) => replaced.push(value))
  return { keeper, timers, log, trouble, replaced, state }
}

describe('a lease that is kept', () => {
  it('is taken when it is first needed, and once for all who wait for it', async () => {
    const { keeper, log } = leasing()
    expect(log).toEqual([])
    expect(await Promise.all([keeper.current(), keeper.current()])).toEqual(['lease 1', 'lease 1'])
    expect(log).toEqual(['acquire 1'])
  })

  it('is renewed at two thirds of its time, again and again', async () => {
    const { keeper, timers, log, replaced } = leasing()
    await keeper.current()
    await timers.advance(39 * minute)
    expect(log).toEqual(['acquire 1'])
    await timers.advance(1 * minute)
    expect(log).toEqual(['acquire 1', 'renew lease 1'])
    await timers.advance(40 * minute)
    expect(log).toHaveLength(3)
    expect(replaced).toEqual([])
  })

  it('is replaced before its end once renewing grants less than at first', async () => {
    const maxMs = 100 * minute
    const { keeper, timers, log, replaced } = leasing(maxMs)
    await keeper.current()
    let replacedAtMs = 0
    const startedAtMs = timers.nowMs()
    keeper.onReplaced(() => {
      replacedAtMs = timers.nowMs() - startedAtMs
    })
    await timers.advance(maxMs)
    expect(log).toEqual(['acquire 1', 'renew lease 1', 'renew lease 1', 'acquire 2'])
    expect(replaced).toEqual(['lease 2'])
    expect(replacedAtMs).toBeLessThanOrEqual(maxMs - hour / 6)
  })

  it('is replaced at once when renewing is refused', async () => {
    const { keeper, timers, log, trouble, replaced, state } = leasing()
    await keeper.current()
    state.renewError = 'lease not found'
    await timers.advance(40 * minute)
    expect(replaced).toEqual(['lease 2'])
    expect(log).toEqual(['acquire 1', 'not renewed: lease not found', 'acquire 2'])
    expect(trouble).toEqual([])
  })

  it('is replaced at once when it will end with something else', async () => {
    const { keeper, timers, replaced, state } = leasing()
    await keeper.current()
    state.isDoomed = true
    keeper.wake()
    await timers.advance(0)
    expect(replaced).toEqual(['lease 2'])
  })

  it('never needs a timer longer than the process can set', async () => {
    const { keeper, timers } = leasing(Number.POSITIVE_INFINITY)
    await keeper.current()
    expect(timers.nextInMs()).toBeLessThanOrEqual(hour)
  })
})

describe('a source that cannot be reached', () => {
  it('is asked again with growing rests while the lease stays in use, and all is well when it is back', async () => {
    const { keeper, timers, log, trouble, state } = leasing()
    await keeper.current()
    state.renewError = 'away'
    await timers.advance(45 * minute)
    expect(await keeper.current()).toBe('lease 1')
    expect(trouble.length).toBeGreaterThan(5)
    expect(trouble.length).toBeLessThan(30)
    state.renewError = null
    await timers.advance(30_000)
    expect(log).toEqual(['acquire 1', 'renew lease 1'])
  })

  it('leaves nothing to use once the lease has ended, and says why', async () => {
    const { keeper, timers, trouble, state } = leasing()
    await keeper.current()
    state.renewError = 'away'
    state.acquireError = 'away'
    await timers.advance(61 * minute)
    await expect(keeper.current()).rejects.toBe('away')
    expect(trouble.at(-1)).toBe('away unusable')
  })

  it('gives a new lease to those who listen when it is back after the end', async () => {
    const { keeper, timers, replaced, state } = leasing()
    await keeper.current()
    state.renewError = 'away'
    state.acquireError = 'away'
    await timers.advance(61 * minute)
    state.acquireError = null
    await timers.advance(31_000)
    expect(replaced).toEqual(['lease 2'])
    expect(await keeper.current()).toBe('lease 2')
  })
})

describe('a lease that does not work any more', () => {
  it('is replaced for the next who asks', async () => {
    const { keeper, timers } = leasing()
    const first = await keeper.current()
    await timers.advance(minute)
    keeper.rejected((value) => value === first)
    expect(await keeper.current()).toBe('lease 2')
  })

  it('is not replaced again for every refusal of a store that refuses everybody', async () => {
    const { keeper, timers, log } = leasing()
    await keeper.current()
    await timers.advance(minute)
    for (let refusals = 0; refusals < 50; refusals++) {
      const value = await keeper.current()
      keeper.rejected((present) => present === value)
    }
    expect(log).toEqual(['acquire 1', 'acquire 2'])
  })
})

describe('a keeper that is closed', () => {
  it('gives back what is leased, once, and renews no more', async () => {
    const { keeper, timers, log } = leasing()
    await keeper.current()
    expect(await keeper.close()).toBe('lease 1')
    expect(await keeper.close()).toBeUndefined()
    await timers.advance(24 * hour)
    expect(log).toEqual(['acquire 1'])
    await expect(keeper.current()).rejects.toThrow('given back')
  })
})
