import { describe, expect, it } from 'vitest'
import { type Finding, findExpected, findOfWorker } from './findings.ts'
import {
  applyHeartbeat,
  type Heartbeat,
  type ObservationClock,
  observationGapUsMax,
  observe,
  readNewRetries,
  readSilenceUs,
  readWorkerState,
  type Worker,
} from './worker.ts'

const second = 1_000_000
const minute = 60 * second
const start = 1_767_322_245_000_000
const rules = { missingUs: minute, idleUs: 5 * minute, drainingUs: 2 * minute, forgetUs: 24 * 60 * minute }

const beat = (atUs: number, changes: Partial<Heartbeat> = {}): Heartbeat => ({
  namespace: '_system',
  type: 'payout',
  instanceId: 'payout-1',
  source: 'http',
  status: 'RUNNING',
  receivedAt: start + atUs,
  sentAt: start + atUs,
  lag: null,
  ...changes,
})

/** A clock that was observed every 10 s from the start until `untilUs`. */
function observed(untilUs: number): ObservationClock {
  let clock = observe(undefined, 'http', start)
  for (let at = 10 * second; at < untilUs; at += 10 * second) clock = observe(clock, 'http', start + at)
  return observe(clock, 'http', start + untilUs)
}

function apply(known: Worker | undefined, heartbeat: Heartbeat, clock = observed(0)): Worker {
  const worker = applyHeartbeat(known, heartbeat, clock)
  if (worker === undefined) throw new Error('the heartbeat changed nothing')
  return worker
}

const judge = (worker: Worker, atUs: number): Finding | null =>
  findOfWorker(worker, observed(atUs), rules, start + atUs)

describe('the rules of workers', () => {
  it('a worker is missing when its silence is longer than 60 s, and not before', () => {
    const worker = apply(undefined, beat(0))
    expect(judge(worker, 60 * second)).toBeNull()
    expect(judge(worker, 60 * second + 1)).toMatchObject({
      rule: 'worker-missing',
      severity: 'CRITICAL',
      subject: 'payout/payout-1',
      since: start + 60 * second,
    })
    const back = apply(worker, beat(100 * second), observed(100 * second))
    expect(judge(back, 100 * second)).toBeNull()
  })

  it('a worker is idle when it processed no message for longer than 5 min, and stuck if messages wait', () => {
    const seen = (lag: number | null) =>
      apply(undefined, beat(6 * minute, { lastMessageAt: start, lag }), observed(6 * minute))
    const idle = { rule: 'worker-idle', severity: 'WARNING', since: start + 5 * minute }
    expect(judge(seen(0), 6 * minute)).toMatchObject(idle)
    expect(judge(seen(null), 6 * minute)).toMatchObject(idle)
    expect(judge(seen(1), 6 * minute)).toMatchObject({ ...idle, rule: 'worker-stuck' })
    const early = apply(undefined, beat(5 * minute, { lastMessageAt: start }), observed(5 * minute))
    expect(judge(early, 5 * minute)).toBeNull()
    expect(judge(early, 5 * minute + 1)).toMatchObject(idle)
    const busy = apply(early, beat(6 * minute, { lastMessageAt: start + 6 * minute }), observed(6 * minute))
    expect(judge(busy, 6 * minute + second)).toBeNull()
  })

  it('a worker that never got a message is idle from its start, and one that does not report messages never', () => {
    let silent = apply(undefined, beat(0))
    let empty = apply(undefined, beat(0, { lastMessageAt: null }))
    for (let at = 10 * second; at <= 6 * minute; at += 10 * second) {
      silent = apply(silent, beat(at), observed(at))
      empty = apply(empty, beat(at, { lastMessageAt: null }), observed(at))
    }
    expect(judge(silent, 6 * minute)).toBeNull()
    expect(judge(empty, 6 * minute)).toMatchObject({ rule: 'worker-idle', since: start + 5 * minute })
  })

  it('a shutdown that lasts longer than 2 min is found, and ends when the worker reports STOPPED', () => {
    let worker = apply(undefined, beat(0))
    for (let at = 10 * second; at <= 3 * minute; at += 10 * second)
      worker = apply(worker, beat(at, { status: 'SHUTTING_DOWN' }), observed(at))
    expect(judge(worker, 2 * minute + 10 * second)).toBeNull()
    expect(judge(worker, 2 * minute + 10 * second + 1)).toMatchObject({
      rule: 'worker-draining',
      severity: 'WARNING',
      since: start + 2 * minute + 10 * second,
    })
    const stopped = apply(worker, beat(3 * minute, { status: 'STOPPED' }), observed(3 * minute))
    expect(judge(stopped, 4 * minute)).toBeNull()
  })

  it('a clean stop is no finding, however long ago', () => {
    const stopped = apply(apply(undefined, beat(0)), beat(second, { status: 'STOPPED' }))
    expect(judge(stopped, 20 * 60 * minute)).toBeNull()
    expect(readWorkerState(stopped, observed(10 * minute), rules)).toBe('STOPPED')
  })

  it('a worker in Redis that announced its shutdown and vanished has stopped; over HTTP it is still shutting down', () => {
    const end = (source: 'http' | 'redis') =>
      apply(apply(undefined, beat(0, { source })), beat(second, { source, status: 'SHUTTING_DOWN' }))
    const later = observed(5 * minute)
    expect(readWorkerState(end('redis'), observed(minute), rules)).toBe('DRAINING')
    expect(readWorkerState(end('redis'), later, rules)).toBe('STOPPED')
    expect(readWorkerState(end('http'), later, rules)).toBe('DRAINING')
    expect(judge(end('http'), 5 * minute)).toMatchObject({ rule: 'worker-draining' })
  })

  it('an expected worker that never appeared is found after 60 s, until enough of them appeared', () => {
    const find = (atUs: number, count: number) =>
      findExpected(
        [{ type: 'payout', countMin: 2 }],
        new Map([['payout', count]]),
        new Map([['expected:payout', observed(atUs)]]),
        rules,
        start + atUs,
      )
    expect(find(60 * second, 0)).toEqual([])
    expect(find(60 * second + 1, 1)).toMatchObject([
      { rule: 'worker-expected', severity: 'WARNING', subject: 'payout', since: start + 60 * second },
    ])
    expect(find(2 * minute, 2)).toEqual([])
  })
})

describe('the observation clock', () => {
  it('the clock stands still while nobody observes, so a restart makes no worker missing', () => {
    const before = observed(10 * second)
    const worker = apply(undefined, beat(10 * second), before)
    const restarted = observe(before, 'http', start + 60 * minute)
    expect(readSilenceUs(worker, restarted)).toBe(0)
    const later = observe(restarted, 'http', start + 60 * minute + 40 * second)
    expect(readSilenceUs(worker, later)).toBe(40 * second)
  })

  it('a worker that was missing before a restart is still missing after it', () => {
    const worker = apply(undefined, beat(0))
    const restarted = observe(observed(2 * minute), 'http', start + 60 * minute)
    expect(readWorkerState(worker, restarted, rules)).toBe('MISSING')
  })

  it('the clock never goes back, and a short delay between two observations counts', () => {
    const clock = observed(minute)
    expect(observe(clock, 'http', start)).toBe(clock)
    const late = observe(clock, 'http', clock.observedAt + observationGapUsMax)
    expect(late.pausedUs).toBe(0)
    expect(observe(clock, 'http', clock.observedAt + observationGapUsMax + 1).pausedUs).toBe(
      observationGapUsMax + 1,
    )
  })
})

describe('heartbeats', () => {
  it('the same heartbeat in Redis, read again, is no sign of life', () => {
    const known = apply(undefined, beat(0, { source: 'redis', sentAt: start }))
    const again = beat(10 * second, { source: 'redis', sentAt: start })
    expect(applyHeartbeat(known, again, observed(10 * second))).toBeUndefined()
    const next = beat(10 * second, { source: 'redis', sentAt: start + 10 * second })
    expect(applyHeartbeat(known, next, observed(10 * second))?.lastSeenAt).toBe(start + 10 * second)
  })

  it('a heartbeat that another server received earlier does not replace a newer one', () => {
    const known = apply(undefined, beat(10 * second), observed(10 * second))
    expect(applyHeartbeat(known, beat(9 * second), observed(10 * second))).toBeUndefined()
  })

  it('a wrong clock of the worker neither makes it idle nor hides that it is', () => {
    const hour = 60 * minute
    const ahead = beat(10 * minute, { sentAt: start + 10 * minute + hour, lastMessageAt: start + hour })
    expect(apply(undefined, ahead).lastMessageAt).toBe(start)
    const behind = beat(10 * minute, { sentAt: start + 10 * minute - hour, lastMessageAt: start - hour })
    expect(apply(undefined, behind).lastMessageAt).toBe(start)
    const future = beat(0, { sentAt: null, lastMessageAt: start + 1_000 * hour })
    expect(apply(undefined, future).lastMessageAt).toBe(start)
    expect(apply(undefined, beat(0, { sentAt: 0, lastMessageAt: -8e15 })).lastMessageAt).toBe(0)
  })

  it('a worker that starts again under its name begins a new run', () => {
    const first = apply(undefined, beat(0, { lastMessageAt: start }))
    const stopped = apply(first, beat(minute, { status: 'STOPPED', lastMessageAt: start }))
    const again = apply(stopped, beat(10 * minute, { lastMessageAt: null }))
    expect(again).toMatchObject({
      firstSeenAt: start,
      statusSince: start + 10 * minute,
      idleFrom: start + 10 * minute,
    })
  })

  it('retries are counted once, also after the worker started again', () => {
    expect(readNewRetries(undefined, { A: 2 })).toEqual([{ error: 'A', count: 2 }])
    expect(readNewRetries({ A: 2 }, { A: 2 })).toEqual([])
    expect(readNewRetries({ A: 2 }, { A: 5, B: 1 })).toEqual([
      { error: 'A', count: 3 },
      { error: 'B', count: 1 },
    ])
    expect(readNewRetries({ A: 5, B: 1 }, { A: 1, B: 1 })).toEqual([
      { error: 'A', count: 1 },
      { error: 'B', count: 1 },
    ])
  })
})
