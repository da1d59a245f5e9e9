import { describe, expect, it } from 'vitest'
import { createClient, RedriveError } from '../../../client/src/index.ts'
import { startTestServer } from '../http/test-server.ts'

const bytes = Uint8Array.from({ length: 256 }, (_, value) => value)

async function createClientWithQueue(
  over: Partial<Parameters<ReturnType<typeof createClient>['createQueue']>[0]> = {},
) {
  const { url } = await startTestServer()
  const client = createClient({ url, retriesMax: 0 })
  await client.createQueue({ name: 'jobs', ...over })
  return client
}

const rejectionOf = async (call: Promise<unknown>): Promise<RedriveError> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(RedriveError)
  return error as RedriveError
}

describe('the calls of the client', () => {
  it('the client creates, reads, changes and deletes queues', async () => {
    const client = await createClientWithQueue({ partitions: 2, policy: { attemptsMax: 3, reference: 'r' } })
    expect(await client.getQueue('jobs')).toMatchObject({
      name: 'jobs',
      namespace: '_system',
      partitions: 2,
      createdAt: expect.stringMatching(/^20.*Z$/),
      policy: {
        leaseTimeout: '1m0s',
        expireTimeout: '24h0m0s',
        attemptsMax: 3,
        deadQueue: null,
        reference: 'r',
      },
    })
    await client.createQueue({ name: 'dead' })
    await client.updateQueue('jobs', { leaseTimeout: '2m', attemptsMax: 0, deadQueue: 'dead' })
    expect(await client.getQueue('jobs')).toMatchObject({
      policy: {
        leaseTimeout: '2m0s',
        expireTimeout: '24h0m0s',
        attemptsMax: 0,
        deadQueue: 'dead',
        reference: 'r',
      },
      counts: { waiting: 0, deadLettered: 0 },
    })
    const first = await client.listQueues({ limit: 1 })
    expect(first.queues.map(({ name }) => name)).toEqual(['dead'])
    const second = await client.listQueues({ limit: 1, cursor: first.nextCursor ?? '' })
    expect(second.queues.map(({ name }) => name)).toEqual(['jobs'])
    expect(second.nextCursor).toBeNull()
    expect((await client.listQueues({ namespace: '_system' })).queues).toHaveLength(2)
    expect((await client.listQueues({ namespace: 'other' })).queues).toEqual([])
    await client.reloadQueue('jobs')
    await client.deleteQueue('jobs')
    expect(await rejectionOf(client.deleteQueue('jobs'))).toMatchObject({
      code: 'QUEUE_NOT_FOUND',
      status: 400,
    })
    expect(await rejectionOf(client.getQueue('jobs'))).toMatchObject({ code: 'QUEUE_NOT_FOUND', status: 404 })
  })

  it('payloads arrive byte for byte, whether they are given as bytes or as text', async () => {
    const client = await createClientWithQueue()
    await client.produce('jobs', [
      'žluťoučký 🐎',
      bytes,
      { payload: JSON.stringify({ n: 1 }), kind: 'k', encoding: 'json', reference: 'ref' },
    ])
    await client.produce('jobs', '')
    const { items, partition, leaseMsLeft } = await client.lease('jobs', { clientId: 'c', countMax: 10 })
    expect(partition).toBe(0)
    expect(leaseMsLeft).toBeGreaterThan(0)
    expect(leaseMsLeft).toBeLessThanOrEqual(60_500)
    const [text, binary, json, empty] = items
    expect(text?.text()).toBe('žluťoučký 🐎')
    expect(binary?.payload).toEqual(bytes)
    expect(json?.json()).toEqual({ n: 1 })
    expect(json).toMatchObject({ kind: 'k', encoding: 'json', reference: 'ref', attempts: 1 })
    expect(empty?.payload).toHaveLength(0)
    await client.complete(
      'jobs',
      partition,
      items.map(({ id }) => id),
    )
    expect((await client.getQueue('jobs')).counts).toMatchObject({ leased: 0, waiting: 0, completed: 4 })
  })

  it('the client retries items at once or later, or makes them dead with a failure', async () => {
    const { url } = await startTestServer()
    const client = createClient({ url, retriesMax: 0 })
    await client.createQueue({ name: 'dead' })
    const retry = { kind: 'fixed', delays: ['0s'] } as const
    await client.createQueue({ name: 'jobs', policy: { deadQueue: 'dead', retry } })
    await client.produce('jobs', ['now', 'later', 'dead'])
    const { items } = await client.lease('jobs', { clientId: 'c', countMax: 3 })
    const [now, later, dead] = items.map(({ id }) => ({ id }))
    if (!now || !later || !dead) throw new Error('three items were expected')
    const failed = { errorClass: 'Çode', message: 'naïve\n"quoted"\0', stack: 'at x', errorCode: 'bad_input' }
    const at = '2199-01-02T03:04:05.000006Z'
    await client.retry('jobs', 0, [now, { ...later, retryAt: at }])
    await client.retry('jobs', 0, [{ ...dead, isDead: true }], { failure: failed })
    expect((await client.listItems('jobs')).map((item) => item.text())).toEqual(['now'])
    expect(await client.listScheduledItems('jobs')).toMatchObject([
      { availableAt: at, leaseDeadline: null, attempts: 1 },
    ])
    expect(await client.listItems('dead')).toMatchObject([{ sourceId: dead.id, attempts: 0 }])
    const stats = await client.getQueueStats('jobs')
    expect(stats.partitions).toMatchObject([{ partition: 0, total: 1, leased: 0, scheduled: 1 }])
    await client.clearQueue('jobs', { isWaiting: true, isScheduled: true })
    expect((await client.getQueueStats('jobs')).partitions).toMatchObject([{ total: 0, scheduled: 0 }])
  })

  it('the client imports items and deletes them', async () => {
    const client = await createClientWithQueue()
    const item = {
      payload: bytes,
      sourceId: 's1',
      attempts: 2,
      expireDeadline: new Date('2199-01-01T00:00:00Z'),
    }
    const [imported] = await client.importItems('jobs', 0, [item])
    expect(imported).toMatchObject({ sourceId: 's1', attempts: 2, expireDeadline: '2199-01-01T00:00:00Z' })
    expect(imported?.payload).toEqual(bytes)
    expect(await client.importItems('jobs', 0, [item])).toMatchObject([{ id: '', sourceId: 's1' }])
    await client.deleteItems('jobs', 0, [imported?.id ?? ''])
    expect(await client.listItems('jobs')).toEqual([])
  })

  it('a failed call rejects with the error code and the id of the item', async () => {
    const client = await createClientWithQueue()
    expect(await rejectionOf(client.createQueue({ name: 'jobs' }))).toMatchObject({
      code: 'QUEUE_EXISTS',
      isRetryable: false,
      isOutcomeUnknown: false,
    })
    await client.produce('jobs', 'x')
    const [item] = await client.listItems('jobs')
    expect(await rejectionOf(client.complete('jobs', 0, [item?.id ?? '']))).toMatchObject({
      code: 'ITEM_NOT_LEASED',
      itemId: item?.id,
      hint: expect.stringContaining('lease'),
      requestId: expect.stringMatching(/./),
    })
    const unknown = '000000000000000000000000000'
    expect(await rejectionOf(client.complete('jobs', 0, [unknown]))).toMatchObject({
      code: 'ITEM_NOT_FOUND',
      itemId: unknown,
    })
    expect(await rejectionOf(client.complete('jobs', 0, ['x']))).toMatchObject({ code: 'ITEM_ID_INVALID' })
    expect(await rejectionOf(client.complete('jobs', 7, [unknown]))).toMatchObject({
      code: 'PARTITION_NOT_FOUND',
    })
    expect(await rejectionOf(client.produce('nope', 'x'))).toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    expect(await rejectionOf(client.produce('jobs', []))).toMatchObject({ code: 'BAD_REQUEST', status: 400 })
    expect(await rejectionOf(client.produce('jobs', 'x'.repeat(5_000_000)))).toMatchObject({
      code: 'BODY_TOO_LARGE',
    })
    const dead = { name: 'd', policy: { deadQueue: 'nope' } }
    expect(await rejectionOf(client.createQueue(dead))).toMatchObject({ code: 'DEAD_QUEUE_INVALID' })
  })

  it('a lease of an empty queue returns no items, and a second lease with a waiting client id is refused', async () => {
    const client = await createClientWithQueue()
    const long = client.lease('jobs', { clientId: 'c', waitMs: 5_000 })
    await expect.poll(async () => (await client.getQueueStats('jobs')).leaseWaiting).toBe(1)
    expect(await rejectionOf(client.lease('jobs', { clientId: 'c' }))).toMatchObject({
      code: 'CLIENT_ID_BUSY',
    })
    expect(await client.lease('jobs', { clientId: 'd', waitMs: 20 })).toMatchObject({ items: [] })
    await client.produce('jobs', 'x')
    expect((await long).items).toHaveLength(1)
  })

  it('an aborted lease call ends at the server, and the next lease gets the items', async () => {
    const client = await createClientWithQueue()
    const stopping = new AbortController()
    const waiting = client.lease('jobs', { clientId: 'c', signal: stopping.signal })
    await expect.poll(async () => (await client.getQueueStats('jobs')).leaseWaiting).toBe(1)
    stopping.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect.poll(async () => (await client.getQueueStats('jobs')).leaseWaiting).toBe(0)
    await client.produce('jobs', 'x')
    expect((await client.lease('jobs', { clientId: 'c' })).items).toMatchObject([{ attempts: 1 }])
  })
})
