import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Campaign } from '../../../letters/letters.ts'
import { streamEvents } from './events.ts'

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

/** Creates changes that yield the first state, and the next one only after `publish`. */
function createChanges() {
  const next = Promise.withResolvers<Campaign>()
  async function* generate() {
    yield campaign
    yield await next.promise
  }
  return { changes: generate(), publish: next.resolve }
}

const fail = (error: unknown): void => {
  throw error
}

describe('the events of a campaign', () => {
  it('the event stream sends heartbeats while the campaign does not change', async () => {
    const { changes, publish } = createChanges()
    const lines = streamEvents(changes, new AbortController().signal, fail)
    expect((await lines.next()).value).toBe('retry: 2000\n\n')
    expect((await lines.next()).value).toMatch(/^id: running-1\nevent: campaign\ndata: \{"id":"c",.*\}\n\n$/)
    for (let beat = 0; beat < 3; beat++) {
      const silent = lines.next()
      await vi.advanceTimersByTimeAsync(15_000)
      expect((await silent).value).toBe(': still here\n\n')
    }
    const last = lines.next()
    publish({ ...campaign, state: 'done', updatedAt: 2, endedAt: 2 })
    expect((await last).value).toMatch(/^id: done-2\nevent: end\n/)
    expect((await lines.next()).done).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('the event stream ends immediately when its client disconnects, and leaves no timer', async () => {
    const { changes } = createChanges()
    const leaving = new AbortController()
    const lines = streamEvents(changes, leaving.signal, fail)
    await lines.next()
    await lines.next()
    const waiting = lines.next()
    leaving.abort()
    expect((await waiting).done).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('the event stream ends when watching fails, so that the client reconnects', async () => {
    async function* broken(): AsyncGenerator<Campaign> {
      yield campaign
      throw new Error('the store is gone')
    }
    const failures: unknown[] = []
    const lines: string[] = []
    for await (const line of streamEvents(broken(), new AbortController().signal, (error) =>
      failures.push(error),
    )) {
      lines.push(line)
    }
    expect(lines).toHaveLength(2)
    expect(failures).toEqual([new Error('the store is gone')])
  })
})
