import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Instant, usPerMs } from '../core/instant.ts'
import { createDueScheduler, type DueScheduler } from './due-scheduler.ts'
import type { Writer } from './writer.ts'

describe('the due scheduler', () => {
  let scheduler: DueScheduler
  let passes: { atMs: number; untilMs: number }[]
  let dueAt: Instant | null
  /** The times of the commands that shorten leases. The leases take two commands each time. */
  let shortened: Instant[]
  let behindUs: number
  const clock = { now: () => Date.now() * usPerMs - behindUs }

  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 })
    passes = []
    dueAt = null
    shortened = []
    behindUs = 0
    const write = async ([command]: readonly { op: string; now: Instant }[]) => {
      if (command?.op === 'shorten-leases') {
        shortened.push(command.now)
        return [{ shortened: 0, next: shortened.length % 2 === 1 ? { deadline: 1, key: '' } : null }]
      }
      const untilMs = (command?.now ?? 0) / usPerMs
      passes.push({ atMs: Date.now(), untilMs })
      const isDue = dueAt !== null && dueAt <= untilMs * usPerMs
      if (isDue) dueAt = null
      return [{ changes: isDue ? [{}] : [] }]
    }
    scheduler = createDueScheduler({
      storage: { nextDueAt: async () => dueAt },
      writer: { write: write as unknown as Writer['write'] },
      clock,
      onError: (error) => expect.unreachable(String(error)),
    })
  })
  afterEach(async () => {
    await scheduler.stop()
    vi.useRealTimers()
  })

  it('handles what is due 20 to 80 ms after its time, also if a pass runs for another reason before', async () => {
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

  it('shortens the leases from before the clock was set back, at the start and after each time', async () => {
    scheduler.start()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(shortened).toHaveLength(2)
    behindUs = 900 * usPerMs
    await vi.advanceTimersByTimeAsync(3_000)
    expect(shortened).toHaveLength(2)
    behindUs = 3_600_000 * usPerMs
    await vi.advanceTimersByTimeAsync(3_000)
    expect(shortened).toHaveLength(4)
    await scheduler.advance()
    expect(shortened).toHaveLength(4)
    for (const at of shortened.slice(2)) expect(at).toBeLessThan(clock.now() + 1)
    expect(passes.at(-1)?.untilMs).toBe(clock.now() / usPerMs)
  })

  it('looks at least once per second for items of other servers', async () => {
    scheduler.start()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(passes.length).toBeGreaterThanOrEqual(9)
  })
})
