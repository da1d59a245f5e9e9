import { describe, expect, it } from 'vitest'
import { createManualTimers } from '../../../test/vault/manual-timers.ts'
import { createVaultLeaseRenewer, type Grant } from './vault-lease-renewer.ts'

const minute = 60_000
const hour = 60 * minute

/** A renewer for leases of an hour, which can be renewed up to `maxMs` after they were acquired. */
function createRenewer(maxMs = 24 * hour) {
  const timers = createManualTimers()
  const log: string[] = []
  const failures: string[] = []
  const state = { acquireError: null as unknown, renewError: null as unknown, isDoomed: false }
  let count = 0
  let acquiredAtMs = 0

  const renewer = createVaultLeaseRenewer<string>(
    {
      acquire: async () => {
        if (state.acquireError !== null) throw state.acquireError
        acquiredAtMs = timers.nowMs()
        log.push(`acquire ${++count}`)
        return { value: `lease ${count}`, leaseMs: Math.min(hour, maxMs), isRenewable: true }
      },
      renew: async (grant: Grant<string>) => {
        if (state.renewError !== null) throw state.renewError
        log.push(`renew ${grant.value}`)
        return { ...grant, leaseMs: Math.min(hour, acquiredAtMs + maxMs - timers.nowMs()) }
      },
      isTemporary: (error) => error === 'unavailable',
      isSame: (one, other) => one === other,
      isEndingEarly: () => state.isDoomed && count === 1,
      onRenewalRefused: (error) => log.push(`renewal refused: ${error}`),
      onFailure: (error, isUsable) => failures.push(`${error} ${isUsable ? 'usable' : 'unusable'}`),
    },
    timers,
  )
  const replaced: string[] = []
  renewer.onReplaced((value) => replaced.push(value))
  return { renewer, timers, log, failures, replaced, state }
}

describe('a lease', () => {
  it('the lease is acquired at the first use, once for concurrent callers', async () => {
    const { renewer, log } = createRenewer()
    expect(log).toEqual([])
    expect(await Promise.all([renewer.current(), renewer.current()])).toEqual(['lease 1', 'lease 1'])
    expect(log).toEqual(['acquire 1'])
  })

  it('the lease is renewed repeatedly at two thirds of its time', async () => {
    const { renewer, timers, log, replaced } = createRenewer()
    await renewer.current()
    await timers.advance(39 * minute)
    expect(log).toEqual(['acquire 1'])
    await timers.advance(1 * minute)
    expect(log).toEqual(['acquire 1', 'renew lease 1'])
    await timers.advance(40 * minute)
    expect(log).toHaveLength(3)
    expect(replaced).toEqual([])
  })

  it('the lease is replaced before its end if a renewal grants less time than at first', async () => {
    const maxMs = 100 * minute
    const { renewer, timers, log, replaced } = createRenewer(maxMs)
    await renewer.current()
    let replacedAtMs = 0
    const startedAtMs = timers.nowMs()
    renewer.onReplaced(() => {
      replacedAtMs = timers.nowMs() - startedAtMs
    })
    await timers.advance(maxMs)
    expect(log).toEqual(['acquire 1', 'renew lease 1', 'renew lease 1', 'acquire 2'])
    expect(replaced).toEqual(['lease 2'])
    expect(replacedAtMs).toBeLessThanOrEqual(maxMs - hour / 6)
  })

  it('the lease is replaced immediately if its renewal is refused', async () => {
    const { renewer, timers, log, failures, replaced, state } = createRenewer()
    await renewer.current()
    state.renewError = 'lease not found'
    await timers.advance(40 * minute)
    expect(replaced).toEqual(['lease 2'])
    expect(log).toEqual(['acquire 1', 'renewal refused: lease not found', 'acquire 2'])
    expect(failures).toEqual([])
  })

  it('the lease is replaced immediately if its value ends early', async () => {
    const { renewer, timers, replaced, state } = createRenewer()
    await renewer.current()
    state.isDoomed = true
    renewer.wake()
    await timers.advance(0)
    expect(replaced).toEqual(['lease 2'])
  })

  it('a lease without end uses timers of at most an hour, which the process can set', async () => {
    const { renewer, timers } = createRenewer(Number.POSITIVE_INFINITY)
    await renewer.current()
    expect(timers.nextInMs()).toBeLessThanOrEqual(hour)
  })
})

describe('a source that cannot be reached', () => {
  it('renewal is retried with growing delays while the lease stays in use, until the source is back', async () => {
    const { renewer, timers, log, failures, state } = createRenewer()
    await renewer.current()
    state.renewError = 'unavailable'
    await timers.advance(45 * minute)
    expect(await renewer.current()).toBe('lease 1')
    expect(failures.length).toBeGreaterThan(5)
    expect(failures.length).toBeLessThan(30)
    state.renewError = null
    await timers.advance(30_000)
    expect(log).toEqual(['acquire 1', 'renew lease 1'])
  })

  it('after the lease has ended, current rejects with the error of the source', async () => {
    const { renewer, timers, failures, state } = createRenewer()
    await renewer.current()
    state.renewError = 'unavailable'
    state.acquireError = 'unavailable'
    await timers.advance(61 * minute)
    await expect(renewer.current()).rejects.toBe('unavailable')
    expect(failures.at(-1)).toBe('unavailable unusable')
  })

  it('listeners get the new lease if the source is back after the lease has ended', async () => {
    const { renewer, timers, replaced, state } = createRenewer()
    await renewer.current()
    state.renewError = 'unavailable'
    state.acquireError = 'unavailable'
    await timers.advance(61 * minute)
    state.acquireError = null
    await timers.advance(31_000)
    expect(replaced).toEqual(['lease 2'])
    expect(await renewer.current()).toBe('lease 2')
  })
})

describe('a rejected lease', () => {
  it('a lease that was marked as rejected is replaced at the next use', async () => {
    const { renewer, timers } = createRenewer()
    const first = await renewer.current()
    await timers.advance(minute)
    renewer.markRejected((value) => value === first)
    expect(await renewer.current()).toBe('lease 2')
  })

  it('many rejections in a row replace the lease only once', async () => {
    const { renewer, timers, log } = createRenewer()
    await renewer.current()
    await timers.advance(minute)
    for (let refusals = 0; refusals < 50; refusals++) {
      const value = await renewer.current()
      renewer.markRejected((present) => present === value)
    }
    expect(log).toEqual(['acquire 1', 'acquire 2'])
  })
})

describe('close', () => {
  it('close returns the leased value once, and ends the renewals', async () => {
    const { renewer, timers, log } = createRenewer()
    await renewer.current()
    expect(await renewer.close()).toBe('lease 1')
    expect(await renewer.close()).toBeUndefined()
    await timers.advance(24 * hour)
    expect(log).toEqual(['acquire 1'])
    await expect(renewer.current()).rejects.toThrow('already returned')
  })
})
