import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { startFaultyProxy } from '../http/faulty-proxy.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

async function createClientWithQueue(lease = '1m') {
  const { url } = await startTestServer()
  const client = createClient({ url, backoffMsMin: 1 })
  await client.createQueue({ name: 'jobs', policy: { leaseTimeout: lease } })
  return { client, url }
}

describe('client calls beyond the Queue API', () => {
  it('a worker extends the leases of long work, so that each item is processed once', async () => {
    const { client } = await createClientWithQueue('5s')
    await client.produce('jobs', ['a', 'b', 'c'])
    const starts: string[] = []
    type LeasedText = { id: string; leaseDeadline: string; text(): string }
    const handler = async (item: LeasedText, { signal }: { signal: AbortSignal }) => {
      starts.push(item.text())
      const readDeadlineMs = async () => {
        const stored = (await client.listItems('jobs')).find(({ id }) => id === item.id)
        return Date.parse(stored?.leaseDeadline ?? '')
      }
      const firstDeadlineMs = Date.parse(item.leaseDeadline)
      await pollUntil(readDeadlineMs, (deadlineMs) => deadlineMs > firstDeadlineMs)
      signal.throwIfAborted()
    }
    const workers = [
      client.work('jobs', handler, { waitMs: 200 }),
      client.work('jobs', handler, { waitMs: 200 }),
    ]
    await pollUntil(
      async () => (await client.getQueue('jobs')).counts,
      ({ completed }) => completed === 3,
    )
    await Promise.all(workers.map((worker) => worker.stop()))
    expect(starts.toSorted()).toEqual(['a', 'b', 'c'])
  })

  it.each(['.', '..', '...', '.hidden', 'a/b?c#d%25', '%2e', 'ü😀', '__proto__'])(
    'the client reaches a queue named %s',
    async (name) => {
      const { client } = await createClientWithQueue()
      await client.createQueue({ name })
      expect(await client.pauseQueue(name)).toMatchObject({ name, isPaused: true })
      expect(await client.resumeQueue(name)).toMatchObject({ name, isPaused: false })
      expect(await client.produceOnce(name, 'key', 'one')).toMatchObject({ isRepeat: false })
      const { partition, items } = await client.lease(name, { clientId: 'w', waitMs: 5_000 })
      const ids = items.map(({ id }) => id)
      expect(await client.extend(name, partition, ids)).toMatchObject({ leaseDeadline: expect.any(String) })
      await client.complete(name, partition, ids)
      expect((await client.getQueue(name)).counts).toMatchObject({ completed: 1 })
    },
  )

  it('the signal of a handler aborts when another client deletes its item', async () => {
    const { client } = await createClientWithQueue('5s')
    await client.produce('jobs', ['taken', 'kept'])
    const aborted: string[] = []
    const handler = async (item: { text(): string }, { signal }: { signal: AbortSignal }) => {
      signal.addEventListener('abort', () => aborted.push(item.text()))
      await pollUntil(
        async () => aborted,
        (texts) => texts.includes('taken'),
      )
    }
    const worker = client.work('jobs', handler, { waitMs: 200 })
    const leased = await pollUntil(
      () => client.listItems('jobs'),
      (items) => items.every(({ isLeased }) => isLeased),
    )
    const taken = leased.find((item) => item.text() === 'taken')
    await client.deleteItems('jobs', 0, [taken?.id ?? ''])
    await pollUntil(
      async () => (await client.getQueue('jobs')).counts,
      ({ completed }) => completed === 1,
    )
    await worker.stop()
    expect(aborted).toEqual(['taken'])
    expect(worker.counts()).toMatchObject({ completed: 1, lost: 1 })
  })

  it('an extend changes the leases of all its items or of none', async () => {
    const { client } = await createClientWithQueue('30s')
    await client.produce('jobs', ['a', 'b'])
    const { items, partition } = await client.lease('jobs', { clientId: 'c', countMax: 2 })
    const ids = items.map(({ id }) => id)
    const extended = await client.extend('jobs', partition, ids, { leaseTimeout: '5m' })
    expect(extended.leaseMsLeft).toBeGreaterThan(60_000)
    expect(await client.listItems('jobs')).toMatchObject(ids.map((id) => ({ id, isLeased: true })))
    const gone = '0'.repeat(27)
    await expect(client.extend('jobs', partition, [...ids, gone])).rejects.toMatchObject({
      code: 'ITEM_NOT_FOUND',
      itemId: gone,
    })
  })

  it('cancelLease ends the lease call of a waiting client without items and without counting an attempt', async () => {
    const { client } = await createClientWithQueue()
    expect(await client.cancelLease('jobs', 'c')).toBe(false)
    const waiting = client.lease('jobs', { clientId: 'c', waitMs: 60_000 })
    const other = client.lease('jobs', { clientId: 'd', waitMs: 60_000 })
    await pollUntil(
      async () => (await client.getQueueStats('jobs')).leaseWaiting,
      (count) => count === 2,
    )
    expect(await client.cancelLease('jobs', 'c')).toBe(true)
    expect((await waiting).items).toEqual([])
    expect(await client.cancelLease('jobs', 'c')).toBe(false)
    await client.produce('jobs', 'x')
    expect((await other).items).toMatchObject([{ attempts: 1 }])
    await expect(client.cancelLease('nowhere', 'c')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
  })

  it('produceOnce stores its items once, even when the answer is lost', async () => {
    const { client, url } = await createClientWithQueue()
    let isLost = false
    const proxy = await startFaultyProxy(url, () => {
      if (isLost) return 'none'
      isLost = true
      return 'lose-answer'
    })
    const distantClient = createClient({ url: proxy.url, backoffMsMin: 1 })
    const items = ['x', { payload: Uint8Array.from([1, 2]), kind: 'k', priority: 5 }]
    const produced = await distantClient.produceOnce('jobs', 'order-1', items)
    expect(produced).toMatchObject({ isRepeat: true, ids: [expect.any(String), expect.any(String)] })
    expect(proxy.paths).toHaveLength(2)
    expect((await client.getQueue('jobs')).counts).toMatchObject({ accepted: 2 })
    const { items: leased } = await client.lease('jobs', { clientId: 'c', countMax: 2 })
    expect(leased[0]).toMatchObject({ kind: 'k', payload: Uint8Array.from([1, 2]) })
  })

  it('a dead letter has the payload, key and headers that the client sent, and an edit can send them back', async () => {
    const { client } = await createClientWithQueue()
    await client.createQueue({ name: 'dead' })
    await client.updateQueue('jobs', { deadQueue: 'dead' })
    const headers = [['trace', 'abc'], ['digest', Uint8Array.from([255, 0])], { name: 'empty' }] as const
    const payload = { json: { order: 4711 } }
    await client.produceOnce('jobs', 'order-1', { payload, key: Uint8Array.from([254]), headers })
    const { partition, items } = await client.lease('jobs', { clientId: 'c' })
    const retried = items.map(({ id }) => ({ id, isDead: true }))
    await client.retry('jobs', partition, retried, { failure: { errorCode: 'refused' } })
    const { letters } = await client.listLetters({ queue: 'dead', error_code: 'refused' })
    const id = letters[0]?.id ?? ''
    const letter = await client.getLetter(id)
    expect(letter).toMatchObject({
      payload: { bytes: 14, is_truncated: false, text: '{"order":4711}' },
      key: { base64: '/g==' },
      headers: [{ name: 'trace', text: 'abc' }, { name: 'digest', base64: '/wA=' }, { name: 'empty' }],
      failures: [{ error_code: 'refused' }],
    })
    const edit = { payload: { json: { order: 4712 } }, key: 'customer', headers: letter.headers }
    await client.redriveLetter(id, { edit })
    const { edits } = await client.getLetter(id, { payloadForm: 'json' })
    expect(edits).toMatchObject([
      { payload: { json: { order: 4712 } }, key: { text: 'customer' }, headers: letter.headers },
    ])
  })

  it('the client changes a policy, and pauses and resumes a queue', async () => {
    const { client } = await createClientWithQueue()
    const retry = { kind: 'fixed', delays: ['1h'] } as const
    const changed = await client.updateQueue('jobs', { retry, attemptsMax: 4 }, { reason: 'slower' })
    expect(changed.policy).toMatchObject({
      attemptsMax: 4,
      leaseTimeout: '1m0s',
      retry: { delays: ['1h0m0s'] },
    })
    expect(await client.pauseQueue('jobs')).toMatchObject({ isPaused: true })
    await client.produce('jobs', 'x')
    expect(await client.lease('jobs', { clientId: 'c', waitMs: 50 })).toMatchObject({ items: [] })
    expect(await client.resumeQueue('jobs', { reason: 'fixed' })).toMatchObject({ isPaused: false })
    expect((await client.lease('jobs', { clientId: 'c' })).items).toHaveLength(1)
  })
})
