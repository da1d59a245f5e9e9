import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Campaign } from '../../../letters/letters.ts'
import { events } from './events.ts'

const campaign = {
  id: 'c',
  spec: { selection: { letterIds: [] }, rampUs: 0 },
  state: 'running',
  counts: {},
  createdAt: 0,
  updatedAt: 1,
  startedAt: null,
  endedAt: null,
} as unknown as Campaign

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Says the first state, then nothing more until it is told to. */
function changes() {
  const next = Promise.withResolvers<Campaign>()
  let isLeft = false
  async function* told() {
    try {
      yield campaign
      yield await next.promise
    } finally {
      isLeft = true
    }
  }
  return { told: told(), tell: next.resolve, isLeft: () => isLeft }
}

const fail = (error: unknown): void => {
  throw error
}

describe('the events of a campaign', () => {
  it('keep the connection open while nothing happens', async () => {
    const { told, tell } = changes()
    const lines = events(told, new AbortController().signal, fail)
    expect((await lines.next()).value).toBe('retry: 2000\n\n')
    expect((await lines.next()).value).toMatch(/^id: running-1\nevent: campaign\ndata: \{"id":"c",.*\}\n\n$/)
    for (let beat = 0; beat < 3; beat++) {
      const silent = lines.next()
      await vi.advanceTimersByTimeAsync(15_000)
      expect((await silent).value).toBe(': still here\n\n')
    }
    const last = lines.next()
    tell({ ...campaign, state: 'done', updatedAt: 2, endedAt: 2 })
    expect((await last).value).toMatch(/^id: done-2\nevent: end\n/)
    expect((await lines.next()).done).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('end at once when nobody listens any more, and leave nothing behind', async () => {
    const { told } = changes()
    const leaving = new AbortController()
    const lines = events(told, leaving.signal, fail)
    await lines.next()
    await lines.next()
    const waiting = lines.next()
    leaving.abort()
    expect((await waiting).done).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('end when it cannot be watched any more, so that the client comes back', async () => {
    async function* broken(): AsyncGenerator<Campaign> {
      yield campaign
      throw new Error('the store is gone')
    }
    const failures: unknown[] = []
    const lines: string[] = []
    for await (const line of events(broken(), new AbortController().signal, (error) =>
      failures.push(error),
    )) {
      lines.push(line)
    }
    expect(lines).toHaveLength(2)
    expect(failures).toEqual([new Error('the store is gone')])
  })
})
