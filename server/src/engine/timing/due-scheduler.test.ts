import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Instant, usPerMs } from '../../core/time/instant.ts'
import type { Advance, CorrectLeases } from '../../storage/contract/items.ts'
import type { Writer } from '../writes/writer.ts'
import { createDueScheduler, type DueScheduler } from './due-scheduler.ts'

describe('the due scheduler', () => {
  let scheduler: DueScheduler
  let passes: { atMs: number; untilMs: number }[]
  let dueAt: Instant | null
  /** The commands that correct leases. The leases take two commands each time. */
  let corrections: CorrectLeases[]
  let behindUs: number
  const clock = { now: () => Date.now() * usPerMs - behindUs }

  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 })
    passes = []
    dueAt = null
    corrections = []
    behindUs = 0
    const write = async ([command]: readonly (CorrectLeases | Advance)[]) => {
      if (command?.op === 'correct-leases') {
        corrections.push(command)
        return [{ corrected: 0, next: corrections.length % 2 === 1 ? { deadline: 1, key: '' } : null }]
      }
      const untilMs = (command?.now ?? 0) / usPerMs
      passes.push({ atMs: Date.now(), untilMs })
      const isDue = dueAt !== null && dueAt <= untilMs * usPerMs
      if (isDue) dueAt = null
      return [{ changes: isDue ? [{}] : [] }]
    }
    scheduler = createDueScheduler({
      storage: { readNextDueAt: async () => dueAt },
      writer: { write: write as unknown as Writer['write'] },
      clock,
      elapsedUs: () => performance.now() * usPerMs,
      onError: (error) => expect.unreachable(String(error)),
    })
  })
  afterEach(async () => {
    await scheduler.stop()
    vi.useRealTimers()
  })

  it('the scheduler handles what is due 20 to 80 ms after its time, also if a pass runs for another reason before', async () => {
    const start = Date.now()
    scheduler.start()
    await vi.advanceTimersByTimeAsync(100)
    dueAt = (start + 200) * usPerMs
    scheduler.wakeBy(dueAt)
    scheduler.wakeBy((start + 175) * usPerMs)
    await vi.advanceTimersByTimeAsync(119)
    expect(passes.some(({ atMs }) => atMs > start + 200)).toBe(true)
    expect(dueAt).not.toBeNull()
    await vi.advanceTimersByTimeAsync(60)
    expect(dueAt).toBeNull()
  })

  it('advance handles everything that is due by now', async () => {
    dueAt = clock.now()
    await scheduler.advance()
    expect(dueAt).toBeNull()
  })

  it('the scheduler shortens the leases from before the clock was set back, at the start and after each time', async () => {
    scheduler.start()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(corrections).toHaveLength(2)
    behindUs = 900 * usPerMs
    await vi.advanceTimersByTimeAsync(3_000)
    expect(corrections).toHaveLength(2)
    behindUs = 3_600_000 * usPerMs
    await vi.advanceTimersByTimeAsync(3_000)
    expect(corrections).toHaveLength(4)
    await scheduler.advance()
    expect(corrections).toHaveLength(4)
    for (const { step, now } of corrections.slice(2)) {
      expect(step).toEqual({ direction: 'back' })
      expect(now).toBeLessThan(clock.now() + 1)
    }
    expect(passes.at(-1)?.untilMs).toBe(clock.now() / usPerMs)
  })

  it('the scheduler corrects the leases from before the clock was set forward, before anything is advanced', async () => {
    scheduler.start()
    await vi.advanceTimersByTimeAsync(3_000)
    behindUs = -900 * usPerMs
    await vi.advanceTimersByTimeAsync(3_000)
    expect(corrections).toHaveLength(2)
    const passesBefore = passes.length
    const jumpedFrom = clock.now()
    behindUs = -3_600_000 * usPerMs
    corrections = []
    await scheduler.advance()
    const byUs = 3_599_100 * usPerMs
    const step = { direction: 'forward', byUs, before: jumpedFrom }
    expect(corrections).toMatchObject([
      { step, after: null },
      { step, after: { deadline: 1 } },
    ])
    expect(passes.slice(passesBefore)).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(corrections).toHaveLength(2)
  })

  it('the scheduler looks at least once per second for items of other servers', async () => {
    scheduler.start()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(passes.length).toBeGreaterThanOrEqual(9)
  })
})
