import { beforeEach, expect, it } from 'vitest'
import { describeStores } from '../conformance/support/test-stores.ts'
import { noon } from '../make.ts'
import {
  aHeartbeat,
  createTestWatching,
  minute,
  second,
  type TestClock,
  type TestWatchingOptions,
} from './test-watching.ts'

describeStores('the watch over workers', (given) => {
  let tests = 0
  let type = ''
  let clock: TestClock

  beforeEach(() => {
    const start = noon + ++tests * 86_400 * second
    type = `watched-${tests}`
    clock = { at: start, now: () => clock.at }
  })

  const start = (options: TestWatchingOptions = {}) => createTestWatching(given.storage, clock, options)
  type Watch = ReturnType<typeof start>
  /** Lets time pass in steps of 5 s, with a pass and the heartbeats of workers in each. */
  const advance = async (
    watch: Watch,
    us: number,
    beats: () => readonly ReturnType<typeof aHeartbeat>[] = () => [],
  ) => {
    for (const until = clock.at + us; clock.at < until; ) {
      clock.at += Math.min(5 * second, until - clock.at)
      const heartbeats = beats()
      if (heartbeats.length > 0) await watch.receive(heartbeats)
      await watch.pass()
    }
  }
  const beat = (changes: Parameters<typeof aHeartbeat>[0] = {}) => aHeartbeat({ type, ...changes })
  const rules = async (watch: Watch) =>
    (await watch.readFindings())
      .filter(({ subject }) => subject.startsWith(type))
      .map(({ rule, severity }) => `${rule} ${severity}`)

  it('a worker becomes missing after 60 s without a heartbeat, and the next heartbeat clears it', async () => {
    const watch = start()
    await watch.receive([beat()])
    await watch.pass()
    await advance(watch, 60 * second)
    expect(await rules(watch)).toEqual([])
    await advance(watch, 1)
    expect(await rules(watch)).toEqual(['worker-missing CRITICAL'])
    await watch.receive([beat()])
    await watch.pass()
    expect(await rules(watch)).toEqual([])
  })

  it('a running worker becomes idle after 5 min, stuck while messages wait, and busy with the next message', async () => {
    const watch = start()
    const lastMessageAt = clock.at
    let lag = 0
    await advance(watch, 5 * minute, () => [beat({ lastMessageAt, lag })])
    expect(await rules(watch)).toEqual([])
    await advance(watch, 5 * second, () => [beat({ lastMessageAt, lag })])
    expect(await rules(watch)).toEqual(['worker-idle WARNING'])
    lag = 3
    await advance(watch, 5 * second, () => [beat({ lastMessageAt, lag })])
    expect(await rules(watch)).toEqual(['worker-stuck WARNING'])
    await advance(watch, 5 * second, () => [beat({ lastMessageAt: clock.at, lag })])
    expect(await rules(watch)).toEqual([])
  })

  it('a shutdown of more than 2 min is found, and a worker that stopped is no finding', async () => {
    const watch = start()
    await watch.receive([beat()])
    await advance(watch, 2 * minute + 5 * second, () => [beat({ status: 'SHUTTING_DOWN' })])
    expect(await rules(watch)).toEqual([])
    await advance(watch, 5 * second, () => [beat({ status: 'SHUTTING_DOWN' })])
    expect(await rules(watch)).toEqual(['worker-draining WARNING'])
    await watch.receive([beat({ status: 'STOPPED' })])
    await advance(watch, 30 * minute)
    expect(await rules(watch)).toEqual([])
    expect(watch.peekReport()?.workerCounts.get(type)).toMatchObject({ STOPPED: 1, MISSING: 0 })
  })

  it('an expected worker that never appears is found after 60 s, and cleared when it appears', async () => {
    const watch = start({ expected: [{ type, countMin: 1 }] })
    await watch.pass()
    await advance(watch, 60 * second)
    expect(await rules(watch)).toEqual([])
    await advance(watch, 1)
    expect(await rules(watch)).toEqual(['worker-expected WARNING'])
    await watch.receive([beat()])
    await watch.pass()
    expect(await rules(watch)).toEqual([])
    await watch.receive([beat({ status: 'STOPPED' })])
    await advance(watch, 10 * minute)
    expect(await rules(watch)).toEqual([])
  })

  it('a worker that stopped or is missing is forgotten after its retention, and others are not', async () => {
    const watch = start()
    const names = ['stopped', 'missing']
    await watch.receive([beat({ instanceId: 'stopped', status: 'STOPPED' }), beat({ instanceId: 'missing' })])
    await watch.pass()
    const list = async () =>
      (await given.storage.listWorkers({ type, countMax: 10 })).map(({ instanceId }) => instanceId)
    await advance(watch, 60 * minute, () => [beat({ instanceId: 'running' })])
    expect((await list()).toSorted()).toEqual([...names, 'running'].toSorted())
    await advance(watch, 5 * second, () => [beat({ instanceId: 'running' })])
    expect(await list()).toEqual(['running'])
  })

  it('a restart of all servers makes no worker missing, and one that was missing stays missing', async () => {
    const first = start()
    await first.receive([beat({ instanceId: 'gone' })])
    await advance(first, 2 * minute, () => [beat({ instanceId: 'alive' })])
    clock.at += 60 * minute
    const second = start()
    await second.pass()
    const missing = (await second.readFindings()).filter(({ subject }) => subject.startsWith(type))
    expect(missing.map(({ rule, subject }) => `${rule} ${subject}`)).toEqual([`worker-missing ${type}/gone`])
    await second.receive([beat({ instanceId: 'alive' })])
    await advance(second, 30_000_000, () => [beat({ instanceId: 'alive' })])
    expect(await rules(second)).toEqual(['worker-missing CRITICAL'])
  })

  it('two servers that receive the heartbeats of one worker in turn report the same', async () => {
    const [first, second] = [start(), start()]
    let turn = 0
    const both = async () => {
      await first.pass()
      await second.pass()
    }
    for (let at = 0; at < 3 * minute; at += 10_000_000) {
      clock.at += 10_000_000
      await (turn++ % 2 === 0 ? first : second).receive([beat({ lastMessageAt: clock.at })])
      await both()
      expect(await rules(first)).toEqual([])
      expect(await rules(second)).toEqual([])
    }
    for (let at = 0; at < 70_000_000; at += 10_000_000) {
      clock.at += 10_000_000
      await both()
      expect(await second.readFindings()).toEqual(await first.readFindings())
    }
    expect(await rules(first)).toEqual(['worker-missing CRITICAL'])
    expect(first.peekReport()?.workerCounts).toEqual(second.peekReport()?.workerCounts)
  })

  it('a heartbeat that changes the state of a worker is stored when it is answered', async () => {
    const watch = start()
    const read = async () => (await given.storage.listWorkers({ type, countMax: 1 }))[0]
    await watch.receive([beat()])
    expect(await read()).toMatchObject({ status: 'RUNNING', lastSeenAt: clock.at })
    const seenAt = clock.at
    clock.at += 10 * second
    await watch.receive([beat()])
    expect(await read()).toMatchObject({ lastSeenAt: seenAt })
    clock.at += second
    await watch.receive([beat({ status: 'STOPPED' })])
    expect(await read()).toMatchObject({ status: 'STOPPED', lastSeenAt: clock.at })
  })

  it('heartbeats that could not be stored follow with the next pass', async () => {
    let isDown = false
    const failing = new Proxy(given.storage, {
      get: (target, name) => {
        if (name === 'write' && isDown) return () => Promise.reject(new Error('the store is down'))
        const value = target[name as keyof typeof target]
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const watch = createTestWatching(failing, clock)
    await watch.receive([beat()])
    clock.at += 10 * second
    isDown = true
    await watch.receive([beat({ lag: 5 })])
    await expect(watch.pass()).rejects.toThrow('the store is down')
    await expect(watch.receive([beat({ status: 'STOPPED' })])).rejects.toThrow('the store is down')
    isDown = false
    await watch.pass()
    const [worker] = await given.storage.listWorkers({ type, countMax: 1 })
    expect(worker).toMatchObject({ status: 'STOPPED', lastSeenAt: clock.at })
  })

  it('a lag above its limits is found, and cleared when the group has caught up', async () => {
    let lag = 100
    const watch = start({
      thresholds: [{ topic: `${type}.*`, warning: 100, critical: 500 }],
      lags: () => [{ cluster: `${type}`, group: 'g', topic: `${type}.commands`, lag }],
    })
    const found = async () => {
      await watch.pass()
      return (await watch.readFindings())
        .filter(({ subject }) => subject.startsWith(type))
        .map(({ severity, since }) => [severity, since])
    }
    expect(await found()).toEqual([])
    lag = 101
    const since = clock.at
    expect(await found()).toEqual([['WARNING', since]])
    clock.at += second
    expect(await found()).toEqual([['WARNING', since]])
    lag = 501
    expect(await found()).toEqual([['CRITICAL', clock.at]])
    lag = 0
    expect(await found()).toEqual([])
  })

  it('a report has all workers in its counts, and a bounded number of findings and heartbeats', async () => {
    const watch = start()
    const names = Array.from({ length: 2_500 }, (_, at) => `w-${String(at).padStart(5, '0')}`)
    for (let at = 0; at < names.length; at += 1_000)
      await watch.receive(names.slice(at, at + 1_000).map((instanceId) => beat({ instanceId })))
    await advance(watch, 70 * second)
    const report = watch.peekReport()
    expect(report?.workerCounts.get(type)).toMatchObject({ MISSING: 2_500 })
    expect(report?.findingCounts.get('worker-missing')?.CRITICAL).toBeGreaterThanOrEqual(2_500)
    expect(report?.findings).toHaveLength(1_000)
    expect(report?.heartbeats).toHaveLength(500)
    expect(report?.otherHeartbeats.get(type)).toBeLessThan(clock.at)
    await given.run({
      op: 'forget-workers',
      workers: names.map((instanceId) => ({ namespace: '_system', type, instanceId })),
    })
  })
})
