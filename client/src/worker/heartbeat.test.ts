import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../test/manual-clock.ts'
import { type HeartbeatOptions, sendToRedis, startHeartbeat, type WorkerHeartbeat } from './heartbeat.ts'

function start(options: Partial<HeartbeatOptions> = {}) {
  const clock = new ManualClock()
  const sent: { atMs: number; heartbeat: WorkerHeartbeat }[] = []
  const errors: unknown[] = []
  const heartbeat = startHeartbeat({
    type: 'payout',
    instanceId: 'payout-1',
    clock,
    send: async (heartbeat) => void sent.push({ atMs: clock.elapsedMs(), heartbeat }),
    onError: (error) => void errors.push(error),
    ...options,
  })
  return { heartbeat, clock, sent, errors }
}

describe('the heartbeat of a worker', () => {
  it('a heartbeat is sent at the start and every 10 s, with the time of the last message', async () => {
    const { heartbeat, clock, sent } = start({ readLag: () => 7 })
    await clock.advance(4_000)
    heartbeat.recordMessage()
    const messageAt = new Date(clock.nowMs()).toISOString()
    await clock.advance(20_000)
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 10_000, 20_000])
    expect(sent.map((each) => each.heartbeat.lastMessageAt)).toEqual([null, messageAt, messageAt])
    expect(sent[0]?.heartbeat).toMatchObject({ type: 'payout', instanceId: 'payout-1', consumerLag: 7 })
    await heartbeat.stop()
  })

  it('a worker that stops reports SHUTTING_DOWN, then STOPPED, and leaves no timer', async () => {
    const { heartbeat, clock, sent } = start()
    await clock.advance(1)
    await heartbeat.shutDown()
    await clock.advance(10_000)
    await heartbeat.stop()
    await heartbeat.stop()
    await clock.advance(60_000)
    expect(sent.map((each) => each.heartbeat.status)).toEqual([
      'RUNNING',
      'SHUTTING_DOWN',
      'SHUTTING_DOWN',
      'STOPPED',
    ])
    expect(clock.timers).toBe(0)
  })

  it('a failed heartbeat is reported, and the next one is sent at its time', async () => {
    let isFailing = true
    const sent: number[] = []
    const { heartbeat, clock, errors } = start({
      send: async () => {
        if (isFailing) throw new Error('no connection')
        sent.push(1)
      },
    })
    await clock.advance(10_000)
    isFailing = false
    await clock.advance(10_000)
    expect(errors).toHaveLength(2)
    expect(sent).toHaveLength(1)
    await heartbeat.stop()
  })

  it('a stop does not wait for a send that never ends', async () => {
    const { heartbeat, clock, errors } = start({ send: () => new Promise(() => {}) })
    await clock.advance(1)
    const stopped = heartbeat.stop()
    await clock.advance(1_500)
    await stopped
    expect(errors).toHaveLength(2)
    expect(clock.timers).toBe(0)
  })

  it('retries are counted by error, and beyond 20 errors together', async () => {
    const { heartbeat, clock, sent } = start()
    await clock.advance(1)
    heartbeat.recordRetry(new TypeError('one'))
    heartbeat.recordRetry(new TypeError('two'))
    for (let number = 0; number < 25; number++) heartbeat.recordRetry(`error ${number}`)
    await clock.advance(10_000)
    const counts = sent.at(-1)?.heartbeat.retryCounts ?? {}
    expect(counts).toMatchObject({ TypeError: 2, 'error 0': 1, '(others)': 6 })
    expect(Object.keys(counts)).toHaveLength(21)
    await heartbeat.stop()
  })

  it('a lag that cannot be read is reported, and the heartbeat is sent without it', async () => {
    const { heartbeat, clock, sent, errors } = start({ readLag: () => Promise.reject(new Error('no lag')) })
    await clock.advance(1)
    expect(sent[0]?.heartbeat.consumerLag).toBeNull()
    expect(errors).toHaveLength(1)
    await heartbeat.stop()
  })
})

describe('heartbeats in Redis', () => {
  const heartbeat: WorkerHeartbeat = {
    type: 'payout',
    instanceId: 'host:1',
    timestamp: '2026-01-02T03:04:05.000Z',
    status: 'RUNNING',
    lastMessageAt: null,
    consumerLag: 3,
    retryCounts: { TypeError: 1 },
  }
  const value = (status: string) =>
    `{"timestamp":"2026-01-02T03:04:05.000Z","status":"${status}","last_message_at":null,"consumer_lag":3}`
  const { signal } = new AbortController()

  it('the key has the type and the instance, and lives for 30 s, or 60 s during a shutdown', async () => {
    const commands: (readonly string[])[] = []
    const send = sendToRedis({ sendCommand: async (args) => void commands.push(args) })
    await send(heartbeat, signal)
    await send({ ...heartbeat, status: 'SHUTTING_DOWN' }, signal)
    expect(commands).toEqual([
      ['SET', 'worker:payout:host:1', value('RUNNING'), 'EX', '30'],
      ['SET', 'worker:payout:host:1', value('SHUTTING_DOWN'), 'EX', '60'],
    ])
  })

  it('a client with the function call of ioredis works, too', async () => {
    const commands: string[][] = []
    await sendToRedis({ call: async (...args) => void commands.push(args) })(heartbeat, signal)
    expect(commands).toEqual([['SET', 'worker:payout:host:1', value('RUNNING'), 'EX', '30']])
  })
})
