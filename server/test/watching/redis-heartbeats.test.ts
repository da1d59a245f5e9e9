import { createClient } from '@redis/client'
import { pino } from 'pino'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sendToRedis, type WorkerHeartbeat } from '../../../client/src/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { createRedisObserver } from '../../src/ops/watching/heartbeats/redis-observer.ts'
import { createRedisReader } from '../../src/ops/watching/heartbeats/redis-reader.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { noon } from '../make.ts'
import { createTestWatching, minute, second, type TestClock } from './test-watching.ts'

const redis = await requireService('privateRedis')

describe('heartbeats in Redis', needs(redis), () => {
  const clock: TestClock = { at: noon, now: () => clock.at }
  let storage: Storage
  const closings: (() => Promise<unknown>)[] = []
  const newWriter = () => {
    const created = createClient({ url: redis.url })
    created.on('error', () => undefined)
    return created
  }
  let writer: ReturnType<typeof newWriter>

  beforeEach(async () => {
    clock.at = noon
    storage = await openStorage({ kind: 'memory' })
    writer = newWriter()
    await writer.connect()
    await writer.flushDb()
  })
  afterEach(async () => {
    for (const close of closings.splice(0)) await close()
    writer.destroy()
    await storage.close()
  })
  afterAll(() => redis.end())

  const start = (owner = 'server-1', url = redis.url, keysMax = 10_000) => {
    const observer = createRedisObserver({
      reader: createRedisReader({ url }, keysMax),
      engine: () => storage,
      clock,
      owner,
      lockUs: 20 * second,
      log: pino({ level: 'silent' }),
    })
    const watch = createTestWatching(storage, clock, { redis: observer })
    closings.push(() => watch.close())
    return watch
  }
  const heartbeat = (changes: Partial<WorkerHeartbeat> = {}): WorkerHeartbeat => ({
    type: 'payout',
    instanceId: 'host:1',
    timestamp: new Date(clock.at / 1_000).toISOString(),
    status: 'RUNNING',
    lastMessageAt: null,
    consumerLag: 3,
    retryCounts: {},
    ...changes,
  })
  const send = (changes: Partial<WorkerHeartbeat> = {}) =>
    sendToRedis(writer)(heartbeat(changes), new AbortController().signal)
  type Watch = ReturnType<typeof start>
  const advance = async (watch: Watch, us: number, beat?: () => Promise<void>) => {
    for (const until = clock.at + us; clock.at < until; ) {
      clock.at += 10 * second
      await beat?.()
      await watch.pass()
    }
  }
  const rules = async (watch: Watch) => (await watch.readFindings()).map(({ rule }) => rule)
  const list = () => storage.listWorkers({ countMax: 100 })
  /** Writes 200 kB. */
  const fill = async (part: number) => {
    const pipeline = writer.multi()
    for (let at = 0; at < 200; at++) pipeline.set(`other:${clock.at}:${part}:${at}`, 'x'.repeat(1_000))
    await pipeline.exec()
  }

  it('a worker of the client is found with its state, and its key ends after 30 s', async () => {
    await send({ lastMessageAt: new Date(clock.at / 1_000 - 5_000).toISOString() })
    expect(await writer.ttl('worker:payout:host:1')).toBeGreaterThan(20)
    expect(await writer.ttl('worker:payout:host:1')).toBeLessThanOrEqual(30)
    const watch = start()
    await watch.pass()
    expect(await list()).toMatchObject([
      {
        type: 'payout',
        instanceId: 'host:1',
        source: 'redis',
        status: 'RUNNING',
        lag: 3,
        lastSeenAt: clock.at,
        lastMessageAt: clock.at - 5 * second,
      },
    ])
    await send({ status: 'SHUTTING_DOWN' })
    expect(await writer.ttl('worker:payout:host:1')).toBeGreaterThan(50)
  })

  it('a worker that no longer replaces its key becomes missing, although the key is still there', async () => {
    await send()
    await writer.persist('worker:payout:host:1')
    const watch = start()
    await watch.pass()
    await advance(watch, 60 * second)
    expect(await rules(watch)).toEqual([])
    await advance(watch, 10 * second)
    expect(await rules(watch)).toEqual(['worker-missing'])
    await send()
    await watch.pass()
    expect(await rules(watch)).toEqual([])
  })

  it('a worker that announced its shutdown and vanished has stopped, without a finding', async () => {
    await send()
    const watch = start()
    await watch.pass()
    await send({ status: 'SHUTTING_DOWN' })
    await watch.pass()
    await writer.flushDb()
    await advance(watch, 10 * minute)
    expect(await rules(watch)).toEqual([])
    expect(watch.peekReport()?.workerCounts.get('payout')).toMatchObject({ STOPPED: 1 })
  })

  it('while Redis is down there is one finding and no worker is missing; after its restart the watch goes on', async () => {
    await send()
    const watch = start()
    await watch.pass()
    await redis.stop()
    await advance(watch, 10 * minute)
    expect(await rules(watch)).toEqual(['redis-down'])
    expect(watch.redis().reason).toMatch(/Redis/)
    expect(watch.redis().reason).not.toContain(new URL(redis.url).password)
    await redis.start()
    await watch.pass()
    // The restarted Redis is empty, and the worker has not written its key again yet.
    expect(await rules(watch)).toEqual([])
    await advance(watch, 30 * second)
    expect(await rules(watch)).toEqual([])
    await advance(watch, 60 * second)
    expect(await rules(watch)).toEqual(['worker-missing'])
    writer.destroy()
    writer = newWriter()
    await writer.connect()
    await send({ lastMessageAt: new Date(clock.at / 1_000).toISOString() })
    await watch.pass()
    expect(await rules(watch)).toEqual([])
  })

  it('keys that are no heartbeats are reported, and do not hide the others', async () => {
    await send()
    await writer.set('worker:payout', '{}')
    await writer.set('worker:payout:text', 'not json')
    await writer.set('worker:payout:list', '[]')
    await writer.set('worker:payout:no-time', '{"status":"RUNNING"}')
    await writer.hSet('worker:payout:hash', 'field', 'value')
    await writer.set(`worker:payout:${'x'.repeat(300)}`, '{"timestamp":1}')
    await writer.set('worker:payout:control\u0001', '{"timestamp":1}')
    await writer.set(
      'worker:payout:strange',
      '{"timestamp":1767322245.5,"status":7,"consumer_lag":1e300,"last_message_at":"soon","more":{}}',
    )
    const watch = start()
    await watch.pass()
    expect((await list()).map(({ instanceId, lag }) => [instanceId, lag])).toEqual([
      ['host:1', 3],
      ['strange', Number.MAX_SAFE_INTEGER],
    ])
    expect(watch.redis()).toMatchObject({ reason: null })
    expect(watch.redis().unreadable).toContain('worker:payout')
  })

  it('heartbeats that an evicting Redis removes make no worker missing that writes them again', async () => {
    const watch = start()
    await send()
    await watch.pass()
    const [, used = '0'] = /^used_memory:(\d+)/m.exec(await writer.info('memory')) ?? []
    const evicting = { 'maxmemory-policy': 'allkeys-lru', maxmemory: String(Number(used) + 2_000_000) }
    await writer.configSet(evicting)
    try {
      let evicted = 0
      for (let round = 0; round < 20; round++) {
        clock.at += 10 * second
        await send()
        // In three of four rounds the key is gone before it is read.
        if (round % 4 !== 0) for (let part = 0; part < 20; part++) await fill(part)
        if ((await writer.exists('worker:payout:host:1')) === 0) evicted++
        await watch.pass()
        expect(await rules(watch)).toEqual([])
      }
      expect(evicted).toBeGreaterThan(5)
      await advance(watch, 70 * second)
      expect(await rules(watch)).toEqual(['worker-missing'])
    } finally {
      await writer.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: '0' })
    }
  })

  it('one of two servers reads the heartbeats, and the other takes over when it ends', async () => {
    await send()
    const [first, other] = [start('server-1'), start('server-2')]
    await first.pass()
    await other.pass()
    expect(await list()).toMatchObject([{ lastSeenAt: noon }])
    clock.at += 10 * second
    await send()
    await other.pass()
    expect(await list()).toMatchObject([{ lastSeenAt: noon }])
    await first.close()
    await other.pass()
    expect(await list()).toMatchObject([{ lastSeenAt: clock.at }])
  })

  it('more workers than the limit are a finding, and Redis is read in steps', async () => {
    const pipeline = writer.multi()
    for (let at = 0; at < 3_000; at++)
      pipeline.set(`worker:bulk:${at}`, `{"timestamp":${clock.at / 1_000},"status":"RUNNING"}`)
    for (let at = 0; at < 3_000; at++) pipeline.set(`other:${at}`, 'x')
    await pipeline.exec()
    const watch = start()
    await watch.pass()
    expect(watch.peekReport()?.workerCount).toBe(3_000)
    const small = start('server-2', redis.url, 1_000)
    await watch.close()
    await small.pass()
    expect(small.redis().reason).toContain('more than 1000 keys')
    expect(await rules(small)).toContain('redis-down')
  })

  it('a Redis that refuses the password is one finding', async () => {
    const url = new URL(redis.url)
    url.password = 'wrong'
    const watch = start('server-1', url.toString())
    await watch.pass()
    expect(await rules(watch)).toEqual(['redis-down'])
    expect(JSON.stringify(watch.redis())).not.toContain('wrong@')
  })
})
