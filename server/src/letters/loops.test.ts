import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KnownError } from '../errors.ts'
import { createLetterLoops } from './loops.ts'

describe('the background of the letters', () => {
  let loops: ReturnType<typeof createLetterLoops> | undefined
  beforeEach(() => void vi.useFakeTimers())
  afterEach(async () => {
    await loops?.stop()
    vi.useRealTimers()
  })
  const passes = {
    auto: async () => false,
    campaigns: async () => false,
    groups: async () => false,
    retention: async () => false,
  }
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
    await vi.advanceTimersByTimeAsync(100)
    expect(steps).toBe(5)
    await vi.advanceTimersByTimeAsync(hourMs - 200)
    expect(steps).toBe(5)
    await vi.advanceTimersByTimeAsync(200)
    expect(steps).toBe(6)
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
    await vi.advanceTimersByTimeAsync(1_000)
    // Each pass takes 5 ms. With a twentieth of the time, the next one starts 100 ms after the one before.
    const [first] = spans
    expect(spans.map(({ from }) => from - (first?.from ?? 0))).toEqual([0, 100, 200, 300, 400])
  })

  it('only the first of several failures in a row is reported, and the pass is tried again', async () => {
    const reported: string[] = []
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
      (pass, error) => reported.push(`${pass}: ${error}`),
    )
    loops.start()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(tries).toBeGreaterThan(5)
    expect(reported).toEqual(['auto: Error: failure 1', 'auto: Error: failure 4'])
  })

  it('stopping waits for the pass in progress', async () => {
    let endPass = () => {}
    const campaigns = () =>
      new Promise<boolean>((resolve) => {
        endPass = () => resolve(true)
      })
    loops = createLetterLoops(
      () => ({ passes: { ...passes, campaigns } }),
      seldom,
      () => {},
    )
    loops.start()
    await vi.advanceTimersByTimeAsync(0)
    let isStopped = false
    const stopped = loops.stop().then(() => {
      isStopped = true
    })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(isStopped).toBe(false)
    endPass()
    await stopped
  })
})
