import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CallLane, type Request } from './call-lane.ts'

/** A lane that works on nothing until it is told to. */
function heldLane() {
  const done: number[] = []
  const lane = new CallLane<Request<void>>({ weightMax: 1_000, batchesMax: 1 }, async (batch) => {
    for (const { arrival, resolve } of batch) {
      done.push(arrival)
      resolve()
    }
  })
  lane.hold(true)
  let arrival = 0
  const call = (timeoutMs: number, signal?: AbortSignal): Promise<string> =>
    new Promise<void>((resolve, reject) => {
      const deadline = Number.POSITIVE_INFINITY
      lane.call({ arrival: ++arrival, weight: 1, timeoutMs, deadline, resolve, reject }, signal)
    }).then(
      () => 'done',
      (error) => error.message ?? String(error),
    )
  return { lane, done, call }
}

describe('a lane of calls', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('gives each up in its own time while it waits, and works on the others', async () => {
    const { lane, done, call } = heldLane()
    const calls = [300, 100, Number.POSITIVE_INFINITY, 200].map((timeoutMs) => call(timeoutMs))
    await vi.advanceTimersByTimeAsync(250)
    expect(await calls[1]).toBe('not done within 100 ms')
    expect(await calls[3]).toBe('not done within 200 ms')
    expect(lane.waiting).toBe(2)
    lane.hold(false)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await Promise.all([calls[0], calls[2]])).toEqual(['done', 'done'])
    expect(done).toEqual([1, 3])
  })

  it('gives up those whose signal aborts, and hears no signal of who was answered', async () => {
    const { lane, done, call } = heldLane()
    const gone = new AbortController()
    const stays = new AbortController()
    const calls = [gone, stays].map(({ signal }) => call(1_000, signal))
    const deaf = vi.spyOn(stays.signal, 'removeEventListener')
    gone.abort('went')
    expect(await calls[0]).toBe('went')
    lane.hold(false)
    expect(await calls[1]).toBe('done')
    expect(deaf).toHaveBeenCalledOnce()
    expect(done).toEqual([2])
  })

  it('leaves no timer behind once it is off', () => {
    const { lane, call } = heldLane()
    void call(1_000)
    expect(vi.getTimerCount()).toBe(1)
    lane.off()
    expect(vi.getTimerCount()).toBe(0)
  })
})
