import { afterEach, describe, expect, it } from 'vitest'
import { KnownError } from '../errors.ts'
import { createLetterLoops } from './loops.ts'

describe('the background of the letters', () => {
  let loops: ReturnType<typeof createLetterLoops> | undefined
  afterEach(() => loops?.stop())
  const passes = { auto: async () => false, campaigns: async () => false, retention: async () => false }
  const hourMs = 3_600_000
  const seldom = { autoMs: hourMs, campaignsMs: hourMs, retentionMs: hourMs }

  it('the next pass follows immediately while more is left, and after the interval otherwise', async () => {
    let steps = 0
    const campaigns = async () => ++steps < 5
    loops = createLetterLoops(
      () => ({ passes: { ...passes, campaigns } }),
      seldom,
      () => {},
    )
    loops.start()
    await expect.poll(() => steps).toBe(5)
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(steps).toBe(5)
  })

  it('retention uses at most its share of the time while more is left', async () => {
    const spans: { from: number; until: number }[] = []
    const retention = async () => {
      const from = performance.now()
      await new Promise((resolve) => setTimeout(resolve, 5))
      spans.push({ from, until: performance.now() })
      return spans.length < 5
    }
    loops = createLetterLoops(
      () => ({ passes: { ...passes, retention } }),
      seldom,
      () => {},
    )
    loops.start()
    await expect.poll(() => spans.length, { timeout: 10_000 }).toBe(5)
    for (const [index, { from }] of spans.slice(1).entries()) {
      const before = spans[index] ?? { from: 0, until: 0 }
      // It may work a twentieth of the time. (A timer may be a millisecond early.)
      expect(from - before.until).toBeGreaterThan(19 * (before.until - before.from) - 2)
    }
  })

  it('only the first of several failures in a row is reported, and the pass is tried again', async () => {
    const told: string[] = []
    let tries = 0
    const auto = async () => {
      if (++tries !== 3) throw new Error(`failure ${tries}`)
      return false
    }
    const campaigns = async () => {
      throw new KnownError('STORE_UNAVAILABLE', 'the database is away')
    }
    loops = createLetterLoops(
      () => ({ passes: { ...passes, auto, campaigns } }),
      { ...seldom, autoMs: 1, campaignsMs: 1 },
      (pass, error) => told.push(`${pass}: ${error}`),
    )
    loops.start()
    await expect.poll(() => tries).toBeGreaterThan(5)
    expect(told).toEqual(['auto: Error: failure 1', 'auto: Error: failure 4'])
  })

  it('stopping waits for the pass in progress', async () => {
    let isDone = false
    const campaigns = async () => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      isDone = true
      return true
    }
    loops = createLetterLoops(
      () => ({ passes: { ...passes, campaigns } }),
      seldom,
      () => {},
    )
    loops.start()
    await new Promise((resolve) => setTimeout(resolve, 15))
    await loops.stop()
    expect(isDone).toBe(true)
  })
})
