import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { StopSignal } from '../stop-signals.ts'
import type { ToProcess } from './messages.ts'
import type { ProcessListeners, StartProcess } from './server-process.ts'
import { supervise } from './supervise.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

type Fake = ProcessListeners & { number: number; received: ToProcess[]; isKilled: boolean }

function start(count: number) {
  const processes: Fake[] = []
  const served: string[] = []
  const warnings: unknown[] = []
  let requestStop: (signal: StopSignal) => void = () => {}
  const stopRequested = new Promise<StopSignal>((resolve) => {
    requestStop = resolve
  })
  const startProcess: StartProcess = (number, listeners) => {
    const fake: Fake = { number, ...listeners, received: [], isKilled: false }
    processes.push(fake)
    return {
      number,
      pid: 100 + processes.length,
      send: (message) => fake.received.push(message),
      kill: () => {
        fake.isKilled = true
        fake.onEnd({ code: null, signal: 'SIGKILL' })
      },
    }
  }
  const ended = supervise({
    count,
    startProcess,
    stopRequested,
    onServing: (url) => served.push(url),
    onLine: () => undefined,
    warn: (fields) => warnings.push(fields),
    stopMsMax: 5_000,
  })
  const get = (index: number): Fake => processes[index] as Fake
  const serve = (index: number) => get(index).onMessage({ type: 'serving', url: 'http://here' })
  return { processes, get, serve, served, warnings, ended, requestStop: () => requestStop('SIGTERM') }
}

describe('the supervisor of several processes', () => {
  it('the supervisor starts the first process alone, and the others when it serves', () => {
    const { processes, serve, served } = start(3)
    expect(processes).toHaveLength(1)
    serve(0)
    expect(processes).toHaveLength(3)
    serve(1)
    expect(served).toEqual([])
    serve(2)
    expect(served).toEqual(['http://here'])
  })

  it('the supervisor ends with the exit code of a process that cannot start', async () => {
    const { get, serve, ended } = start(2)
    serve(0)
    get(1).onEnd({ code: 2, signal: null })
    expect(get(0).received).toEqual([{ type: 'stop' }])
    get(0).onEnd({ code: 0, signal: null })
    expect(await ended).toBe(2)
  })

  it('the supervisor replaces a process that ends, after waits that grow up to 30 seconds', async () => {
    const { processes, get, serve, warnings } = start(2)
    serve(0)
    serve(1)
    const waits: unknown[] = []
    for (let round = 0; round < 7; round++) {
      get(processes.length - 1).onEnd({ code: null, signal: 'SIGKILL' })
      waits.push((warnings.at(-1) as { restart_ms: number }).restart_ms)
      const before = processes.length
      await vi.advanceTimersByTimeAsync(30_000)
      expect(processes).toHaveLength(before + 1)
      expect(get(before).number).toBe(2)
      serve(before)
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  })

  it('the supervisor waits only a second after a process that served for a minute', async () => {
    const { get, serve, warnings } = start(2)
    serve(0)
    serve(1)
    get(1).onEnd({ code: 1, signal: null })
    await vi.advanceTimersByTimeAsync(2_000)
    serve(2)
    await vi.advanceTimersByTimeAsync(60_000)
    get(2).onEnd({ code: 1, signal: null })
    expect(warnings.at(-1)).toMatchObject({ restart_ms: 1_000 })
  })

  it('the supervisor stops all processes, replaces none, and kills those that do not stop in time', async () => {
    const { processes, get, serve, ended, requestStop } = start(2)
    serve(0)
    serve(1)
    requestStop()
    await vi.advanceTimersByTimeAsync(0)
    expect(processes.map(({ received }) => received)).toEqual([[{ type: 'stop' }], [{ type: 'stop' }]])
    get(0).onEnd({ code: 0, signal: null })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(get(1).isKilled).toBe(true)
    expect(await ended).toBe(0)
    expect(processes).toHaveLength(2)
  })

  it('a process that does not report its metrics in time is represented by its last totals', async () => {
    const { get, serve } = start(2)
    serve(0)
    serve(1)
    get(0).onMessage({ type: 'metrics-wanted', id: 1 })
    const counter = { name: 'a_total', help: '', type: 'counter', aggregator: 'sum' }
    const report = [{ ...counter, values: [{ labels: {}, value: 3 }] }] as never
    for (const number of [0, 1]) get(number).onMessage({ type: 'metrics', id: 1, report })
    await vi.advanceTimersByTimeAsync(0)
    expect(get(0).received.at(-1)).toEqual({ type: 'all-metrics', id: 1, reports: [report, report, []] })
    get(0).onMessage({ type: 'metrics-wanted', id: 2 })
    get(0).onMessage({ type: 'metrics', id: 2, report: [] })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(get(0).received.at(-1)).toEqual({ type: 'all-metrics', id: 2, reports: [[], report, []] })
  })
})
