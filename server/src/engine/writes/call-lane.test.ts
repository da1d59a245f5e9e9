import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { CallLane, type Request } from './call-lane.ts'

/** A lane that processes nothing until it is released. */
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

  it('a lane rejects each waiting call at its own deadline, and processes the others', async () => {
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

  it('a lane rejects a waiting call whose signal aborts, and removes the listener of an answered one', async () => {
    const { lane, done, call } = heldLane()
    const gone = new AbortController()
    const stays = new AbortController()
    const calls = [gone, stays].map(({ signal }) => call(1_000, signal))
    const removed = vi.spyOn(stays.signal, 'removeEventListener')
    gone.abort('went')
    expect(await calls[0]).toBe('went')
    lane.hold(false)
    expect(await calls[1]).toBe('done')
    expect(removed).toHaveBeenCalledOnce()
    expect(done).toEqual([2])
  })

  it('a lane leaves no timer behind once it is stopped', () => {
    const { lane, call } = heldLane()
    void call(1_000)
    expect(vi.getTimerCount()).toBe(1)
    lane.stop()
    expect(vi.getTimerCount()).toBe(0)
  })
})
