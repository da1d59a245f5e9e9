import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KnownError } from '../../errors.ts'
import type { Storage } from '../../storage/contract/storage.ts'
import { createLogger } from '../log/log.ts'
import { createStoreConnection, type StoreConnectionOptions } from './store-connection.ts'

const unreachable = () => new KnownError('STORE_UNAVAILABLE', 'connect ECONNREFUSED 10.0.0.1:5432')

/** Creates a storage that supports only ping and close. */
function createStorage(over: Partial<Storage> = {}): Storage {
  return { kind: 'postgres', ping: async () => {}, close: async () => {}, ...over } as Storage
}

function connect(open: () => Promise<Storage>, over: Partial<StoreConnectionOptions> = {}) {
  const lines: { level: string; msg: string; reason?: string }[] = []
  const log = createLogger({
    level: 'info',
    isPretty: false,
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  })
  const connection = createStoreConnection({ open, log, random: () => 1, ...over })
  return { connection, lines }
}

describe('the store connection', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('the store connection is up when start returns, if the store answers', async () => {
    const storage = createStorage()
    const { connection } = connect(async () => storage)
    await connection.start()
    expect(connection.state()).toMatchObject({ isUp: true, reason: null })
    expect(connection.storage()).toBe(storage)
    await connection.stop()
  })

  it('start returns without an unreachable store, which is retried with growing delays until it is up', async () => {
    let attempts = 0
    const { connection, lines } = connect(
      async () => {
        if (++attempts < 5) throw unreachable()
        return createStorage()
      },
      { backoffMsMin: 100, backoffMsMax: 400 },
    )
    await connection.start()
    expect(connection.state()).toMatchObject({ isUp: false, reason: 'connect ECONNREFUSED 10.0.0.1:5432' })
    expect(() => connection.storage()).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE' }))

    const attemptsAfterMs: number[] = []
    for (const ms of [100, 200, 400, 400]) {
      await vi.advanceTimersByTimeAsync(ms)
      attemptsAfterMs.push(attempts)
    }
    expect(attemptsAfterMs).toEqual([2, 3, 4, 5])
    expect(connection.state().isUp).toBe(true)
    expect(lines.map((line) => line.msg)).toEqual(['store cannot be used; retrying', 'store is up'])
    await connection.stop()
  })

  it('the delay between attempts is random, between half of the backoff and the whole backoff', async () => {
    const open = vi.fn(async () => Promise.reject(unreachable()))
    const { connection } = connect(open, { backoffMsMin: 1_000, random: () => 0 })
    await connection.start()
    await vi.advanceTimersByTimeAsync(499)
    expect(open).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(2)
    expect(open).toHaveBeenCalledTimes(2)
    await connection.stop()
  })

  it('start returns after its time limit when the store does not answer', async () => {
    const { connection } = connect(() => new Promise(() => {}), { firstAttemptMsMax: 3_000 })
    let isStarted = false
    void connection.start().then(() => {
      isStarted = true
    })
    await vi.advanceTimersByTimeAsync(2_999)
    expect(isStarted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(isStarted).toBe(true)
    expect(connection.state()).toMatchObject({ isUp: false, reason: 'not connected yet' })
  })

  it.each([
    'SCHEMA_NEWER',
    'STORE_LOCKED',
    'STORE_UNWRITABLE',
    'STORE_URL_INVALID',
    'STORE_NOT_OURS',
    'STORE_REFUSED',
  ] as const)('start fails at once on %s', async (code) => {
    const open = vi.fn(async () => Promise.reject(new KnownError(code, 'no')))
    const { connection, lines } = connect(open)
    await expect(connection.start()).rejects.toMatchObject({ code })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(open).toHaveBeenCalledTimes(1)
    expect(lines.map((line) => line.msg)).toEqual(['store cannot be used'])
  })

  it('start fails on a wrong password, even if the store reports it as unavailable', async () => {
    const denied = Object.assign(new Error('password authentication failed for user "redrive"'), {
      code: '28P01',
    })
    const { connection } = connect(async () => {
      throw new KnownError('STORE_UNAVAILABLE', denied.message, denied)
    })
    await expect(connection.start()).rejects.toMatchObject({ code: 'STORE_REFUSED' })
  })

  it('start fails on an unexpected error and returns it unchanged', async () => {
    const defect = new TypeError('x is not a function')
    const { connection } = connect(async () => Promise.reject(defect))
    await expect(connection.start()).rejects.toBe(defect)
  })

  it('pings detect that the store is unavailable, and that it is available again', async () => {
    let isReachable = true
    const storage = createStorage({
      ping: async () => (isReachable ? undefined : Promise.reject(unreachable())),
    })
    const { connection } = connect(async () => storage, { pingEveryMs: 1_000 })
    await connection.start()
    await vi.advanceTimersByTimeAsync(0)
    isReachable = false
    await vi.advanceTimersByTimeAsync(1_000)
    expect(connection.state()).toMatchObject({ isUp: false, reason: expect.stringContaining('ECONNREFUSED') })
    // The storage stays usable, because the store may have recovered since the last ping.
    expect(connection.storage()).toBe(storage)
    isReachable = true
    await vi.advanceTimersByTimeAsync(1_000)
    expect(connection.state().isUp).toBe(true)
    await connection.stop()
  })

  it('the reason contains no credentials, and the message for callers contains no address', async () => {
    const { connection, lines } = connect(async () => {
      throw new KnownError('STORE_UNAVAILABLE', 'cannot reach postgres://me:s3cr/et@db:5432/redrive')
    })
    await connection.start()
    const { reason, publicReason } = connection.state()
    expect([reason, publicReason]).toEqual([
      'cannot reach postgres://***@db:5432/redrive',
      'the store cannot be reached',
    ])
    expect(() => connection.storage()).toThrow(
      expect.objectContaining({ publicMessage: 'the store cannot be used now: the store cannot be reached' }),
    )
    expect(JSON.stringify(lines)).not.toContain('s3cr')
    await connection.stop()
  })

  it('stop closes the store once, even if the store was still opening', async () => {
    const close = vi.fn(async () => {})
    let opened: (storage: Storage) => void = () => {}
    const { connection } = connect(() => new Promise((resolve) => (opened = resolve)), {
      firstAttemptMsMax: 1,
    })
    const started = connection.start()
    await vi.advanceTimersByTimeAsync(1)
    await started
    const stopped = connection.stop()
    opened(createStorage({ close }))
    await stopped
    expect(close).toHaveBeenCalledTimes(1)
    expect(() => connection.storage()).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE' }))
  })
})
