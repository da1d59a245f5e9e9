import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLoop } from './loop.ts'

describe('a background loop', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const unexpected = (error: unknown) => expect.unreachable(String(error))

  it('a loop runs a pass at once, then one after each pause', async () => {
    const pass = vi.fn(async () => {})
    const loop = createLoop(1_000, pass, unexpected)
    loop.start()
    await vi.advanceTimersByTimeAsync(0)
    expect(pass).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(pass).toHaveBeenCalledTimes(4)
    await loop.stop()
  })

  it('a loop never overlaps passes: the pause starts when a pass has ended', async () => {
    let running = 0
    let runningMax = 0
    const loop = createLoop(
      10,
      async () => {
        runningMax = Math.max(runningMax, ++running)
        await new Promise((resolve) => setTimeout(resolve, 500))
        running--
      },
      unexpected,
    )
    loop.start()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(runningMax).toBe(1)
    const stopped = loop.stop()
    await vi.advanceTimersByTimeAsync(500)
    await stopped
  })

  it('a loop reports a failed pass and continues', async () => {
    const errors: unknown[] = []
    const loop = createLoop(
      100,
      async () => {
        throw new Error('no luck')
      },
      (error) => errors.push(error),
    )
    loop.start()
    await vi.advanceTimersByTimeAsync(250)
    expect(errors).toHaveLength(3)
    await loop.stop()
  })

  it('a loop reads the length of the pause after each pass', async () => {
    const pauses = [100, 1_000, 10_000]
    const pass = vi.fn(async () => {})
    const loop = createLoop(() => pauses.shift() ?? 1_000_000, pass, unexpected)
    loop.start()
    await vi.advanceTimersByTimeAsync(100)
    expect(pass).toHaveBeenCalledTimes(2)
    await vi.advanceTimersByTimeAsync(999)
    expect(pass).toHaveBeenCalledTimes(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(pass).toHaveBeenCalledTimes(3)
    await loop.stop()
  })

  it('stop aborts the signal of the running pass, waits for its end, and no pass follows', async () => {
    let isAborted = false
    let passes = 0
    const loop = createLoop(
      10,
      (signal) =>
        new Promise((resolve) => {
          passes++
          signal.addEventListener('abort', () => {
            isAborted = true
            setTimeout(resolve, 50)
          })
        }),
      unexpected,
    )
    loop.start()
    await vi.advanceTimersByTimeAsync(0)
    let isStopped = false
    const stopped = loop.stop().then(() => {
      isStopped = true
    })
    await vi.advanceTimersByTimeAsync(49)
    expect([isAborted, isStopped]).toEqual([true, false])
    await vi.advanceTimersByTimeAsync(1)
    await stopped
    await vi.advanceTimersByTimeAsync(1_000)
    expect(passes).toBe(1)
  })

  it('a loop can be stopped twice, and before it is started', async () => {
    const pass = vi.fn(async () => {})
    const loop = createLoop(10, pass, unexpected)
    await loop.stop()
    await loop.stop()
    loop.start()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(pass).not.toHaveBeenCalled()
  })
})
