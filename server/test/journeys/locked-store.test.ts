import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startTestServer } from '../http/test-server.ts'
import { createQueueClient } from '../queue-api/queue-client.ts'

const postgres = await requireService('postgres')

/**
 * Long enough for the setup calls on a busy machine, and shorter than the 2 s that a change of a queue waits
 * for its locks in the database.
 */
const retryable = expect.stringMatching(/^internal error, try your request again(; the store .*)?$/)

const settings = { 'queue.store_timeout': 1_500 }

describe('a database with locked tables', needs(postgres), () => {
  it('item calls to a locked database get a retryable error in time, and no item is lost', async () => {
    const database = await createDatabase()
    const server = await startTestServer(settings, { kind: 'postgres', url: database.url })
    const { send, call } = createQueueClient(() => server.url, 'json')
    const target = { queue_name: 'q', request_timeout: '1m' }
    const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
    await call('queues.create', { queue_name: 'q', requested_partitions: 1, ...timeouts })
    await call('queue.produce', { ...target, items: [{ utf8: 'one' }, { utf8: 'two' }] })
    const { items } = await call('queue.lease', { ...target, client_id: 'w', batch_size: 1 })
    const ids = [items[0].id]

    const lockHolder = new pg.Client({ connectionString: database.url })
    await lockHolder.connect()
    await lockHolder.query('begin; lock table redrive.items in access exclusive mode')
    const answers = await Promise.all([
      send('queue.produce', { ...target, items: [{ utf8: 'three' }] }),
      send('queue.lease', { ...target, client_id: 'w', batch_size: 1 }),
      send('queue.complete', { ...target, ids }),
      send('storage/items.list', { queue_name: 'q' }),
    ])
    for (const { status, body } of answers) {
      expect([status, body.message]).toEqual([454, retryable])
    }
    await lockHolder.query('rollback')
    await lockHolder.end()

    // The calls in progress finish after the lock is released. The item of the abandoned lease call is
    // waiting again, without an attempt.
    const listItems = async () => (await call('storage/items.list', { queue_name: 'q' })).items
    await expect
      .poll(async () => (await listItems())?.map((item: { attempts?: number }) => item.attempts ?? 0))
      .toEqual([0, 0])
    // The abandoned lease call may lease an item during the poll, and return it.
    const leasedItems: { bytes: string; attempts: number }[] = []
    const leaseWaitingItems = async () => {
      const { body } = await send('queue.lease', {
        ...target,
        client_id: 'w',
        batch_size: 9,
        request_timeout: '100ms',
      })
      leasedItems.push(...(body.items ?? []))
      return leasedItems.map(({ bytes, attempts }) => [atob(bytes), attempts]).toSorted()
    }
    await expect.poll(leaseWaitingItems).toEqual([
      ['three', 1],
      ['two', 1],
    ])
  })

  it('queue and import calls to a locked database get a retryable error, and no delete or clear starts', async () => {
    const database = await createDatabase()
    const server = await startTestServer(settings, { kind: 'postgres', url: database.url })
    const { send, call } = createQueueClient(() => server.url, 'json')
    const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
    const late = { queue_name: 'late', requested_partitions: 1, ...timeouts }
    const items = ['one', 'two'].map((text) => ({ payload: btoa(text), source_id: text }))
    const imported = { queue_name: 'q', partition: 0, items }
    const update = { queue_name: 'q', ...timeouts, max_attempts: 7 }
    await call('queues.create', { queue_name: 'q', requested_partitions: 1, ...timeouts })
    await call('storage/items.import', { ...imported, items: items.slice(0, 1) })

    const lockHolder = new pg.Client({ connectionString: database.url })
    await lockHolder.connect()
    const expectRetryableErrors = async (calls: readonly ReturnType<typeof send>[]) => {
      for (const { status, body } of await Promise.all(calls)) {
        expect([status, body.message]).toEqual([454, retryable])
      }
    }
    const sendV1 = async (method: string, path: string, body: object) => {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${server.url}${path}`, { method, headers, body: JSON.stringify(body) })
      return { status: answer.status, ...((await answer.json()) as { error: object }) }
    }
    // This lock blocks writes and allows reads.
    await lockHolder.query('begin; lock table redrive.queues, redrive.items in exclusive mode')
    await expectRetryableErrors([
      send('queues.create', late),
      send('queues.update', update),
      send('storage/items.import', imported),
    ])
    expect(await sendV1('PATCH', '/api/v1/queues/q', { policy: { attempts_max: 7 } })).toMatchObject({
      status: 503,
      error: {
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('is unknown: repeat it, or read queue q'),
      },
    })
    await lockHolder.query('rollback')
    await expect
      .poll(async () => (await send('queues.create', late)).body.message)
      .toContain('already exists')
    // Whether the first update was done is unknown. Repeating it is safe.
    await expect.poll(async () => (await send('queues.update', update)).status).toBe(200)
    await expect.poll(async () => (await call('queues.info', { queue_name: 'q' })).max_attempts).toBe(7)
    // A repeated import skips the items that are already stored.
    await call('storage/items.import', imported)
    const listItems = async () => (await call('storage/items.list', { queue_name: 'q' })).items
    expect((await listItems()).map(({ source_id }: { source_id: string }) => source_id)).toEqual([
      'one',
      'two',
    ])

    await lockHolder.query('begin; lock table redrive.queues in access exclusive mode')
    await expectRetryableErrors([
      send('queue.clear', { queue_name: 'q', queue: true }),
      send('storage/items.delete', { queue_name: 'q', partition: 0, ids: ['0'.repeat(27)] }),
      send('queues.delete', { queue_name: 'q' }),
    ])
    await lockHolder.query('rollback')
    await lockHolder.end()
    expect(await listItems()).toHaveLength(2)
  })
})
