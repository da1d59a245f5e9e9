import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Instant, usPerMs } from '../core/instant.ts'
import { createDueScheduler, type DueScheduler } from './due-scheduler.ts'
import type { Writer } from './writer.ts'

describe('the due scheduler', () => {
  let scheduler: DueScheduler
  let passes: { atMs: number; untilMs: number }[]
  let dueAt: Instant | null
  const clock = { now: () => Date.now() * usPerMs }

  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 })
    passes = []
    dueAt = null
    const write = async ([command]: readonly { now: Instant }[]) => {
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

  it('looks at least once per second for items of other servers', async () => {
    scheduler.start()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(passes.length).toBeGreaterThanOrEqual(9)
  })
})
