/**
 * Connections to PostgreSQL that pass nothing and are not closed. Each test would take more than a minute if
 * the server waited for the time limit of a statement.
 */
import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { beginWrite, Connections } from '../../src/storage/postgres/connection/connections.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startStallingProxy } from '../http/stalling-proxy.ts'
import { startTestServer } from '../http/test-server.ts'
import { newItems, noon } from '../make.ts'
import { run, testDatabase } from '../postgres.ts'
import { createQueueClient } from '../queue-api/queue-client.ts'

const postgres = await requireService('postgres')
const timeout = 40_000
const target = { queue_name: 'q', request_timeout: '20s' }
const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
const quick = { 'store.retry_backoff_max': 200, 'postgres.connect_timeout': 2_000 } as const

async function startBehindProxy() {
  const database = await createDatabase()
  const proxy = await startStallingProxy(database.url)
  const { url } = await startTestServer(quick, { kind: 'postgres', url: proxy.url })
  const client = createQueueClient(() => url, 'json')
  await client.call('queues.create', { queue_name: 'q', requested_partitions: 1, ...timeouts })
  return { proxy, url, ...client }
}

async function readProbes(url: string) {
  const [health, ready] = await Promise.all([fetch(`${url}/health`), fetch(`${url}/readyz`)])
  return { health: health.status, ready: ready.status, text: await health.text() }
}

describe('PostgreSQL connections that pass nothing', needs(postgres), () => {
  it('half-open connections are replaced, and requests work again', { timeout }, async () => {
    const { proxy, send, call } = await startBehindProxy()
    await call('queue.produce', { ...target, items: [{ utf8: 'one' }] })
    proxy.stall('open')
    const unknown = await send('queue.produce', { ...target, items: [{ utf8: 'two' }] })
    expect(unknown.status).toBe(454)
    expect(unknown.body.message).toMatch(/^internal error, try your request again; .*unknown/)
    await pollUntil(
      () => send('queue.produce', { ...target, items: [{ utf8: 'three' }] }),
      ({ status }) => status === 200,
      timeout,
    )
  })

  it('a database that hangs is reported, and a lease does not claim that the queue is empty', {
    timeout,
  }, async () => {
    const { proxy, url, send } = await startBehindProxy()
    expect(await readProbes(url)).toMatchObject({ health: 200, ready: 200 })
    const sendLease = (request_timeout: string) =>
      send('queue.lease', { ...target, client_id: 'w', batch_size: 1, request_timeout })
    expect((await sendLease('100ms')).body.message).toContain('no items are in the queue')
    proxy.stall('open and new')
    const lease = sendLease('4s')
    const down = await pollUntil(
      () => readProbes(url),
      ({ health }) => health === 503,
      timeout,
    )
    expect(down).toMatchObject({ health: 503, ready: 503 })
    expect(down.text).toMatch(/cannot reach the store|did not answer/)
    const { status, body } = await lease
    expect([status, body.message]).toEqual([
      454,
      'internal error, try your request again; the store does not answer, so it is unknown whether queue q has items',
    ])
    const produced = await send('queue.produce', { ...target, items: [{ utf8: 'one' }] })
    expect(produced.body.message).toMatch(/unknown|cannot be used now|cannot reach/)
    proxy.resume()
    await pollUntil(
      () => readProbes(url),
      ({ health, ready }) => health === 200 && ready === 200,
      timeout,
    )
    await pollUntil(
      () => send('queue.produce', { ...target, items: [{ utf8: 'two' }] }),
      ({ status: now }) => now === 200,
      timeout,
    )
  })

  it('a server that is stopped inside a transaction does not hold up other servers', {
    timeout,
  }, async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await run(storage, { op: 'create-queue', queue: { name: 'q' }, now: noon })
    const stopped = new Connections({
      url: database.url,
      credentials: undefined,
      poolMax: 1,
      connectTimeoutMs: 5_000,
    })
    let hasLock = () => {}
    const locked = new Promise<void>((resolve) => {
      hasLock = resolve
    })
    let resume = () => {}
    const resumed = new Promise<void>((resolve) => {
      resume = resolve
    })
    // Sends nothing after it has the lock, like a process that is stopped.
    const held = stopped
      .transaction(beginWrite, async (connection) => {
        await connection.query({ text: 'select 1 from redrive.partitions for update' })
        hasLock()
        await resumed
      })
      .catch((error: unknown) => error)
    await locked
    const write = { op: 'produce', queue: 'q', partition: 0, items: newItems(1), now: noon } as const
    await pollUntil(
      () =>
        run(storage, write).then(
          () => true,
          () => false,
        ),
      (isWritten) => isWritten,
      timeout,
    )
    resume()
    expect(await held).toBeInstanceOf(Error)
    await stopped.close()
  })

  it('a statement that is only slow is not ended', { timeout }, async () => {
    await using database = await testDatabase()
    const connections = new Connections({
      url: database.url,
      credentials: undefined,
      poolMax: 1,
      connectTimeoutMs: 5_000,
    })
    const rows = await connections.use((connection) =>
      connection.query({ text: 'select pg_sleep(6), 7 as answer' }),
    )
    expect(rows).toMatchObject([{ answer: 7 }])
    await connections.ping()
    await connections.close()
  })
})
