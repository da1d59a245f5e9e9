import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { route } from '../../src/api/http/route.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'
import { startTestServer } from '../http/test-server.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** Creates a route that answers after the test calls `release`. */
function createHeldRoute() {
  let release: () => void = () => {}
  let resolveEntered: () => void = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const entered = new Promise<void>((resolve) => (resolveEntered = resolve))
  const held = route({
    method: 'GET',
    path: '/held',
    operationId: 'held',
    permission: 'public',
    summary: 'Waits.',
    tag: 'server',
    dialect: v1,
    schema: { response: { 200: { description: 'Done.', content: {} } } },
    handler: async (_request, reply) => {
      resolveEntered()
      await released
      return reply.send('done')
    },
  })
  return { held, release, entered }
}

const formatRequest = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

describe('the start', () => {
  it.each(['0.0.0.0', '::', '10.1.2.3', 'redrive.example.com'])(
    'without access control, the server refuses to listen on %s, with a hint',
    async (host) => {
      await expect(startTestServer({ host })).rejects.toMatchObject({
        code: 'PROTECTED_MODE',
        message: expect.stringContaining(host),
        hint: expect.stringContaining('127.0.0.1'),
      })
    },
  )

  it.each(['localhost', '127.0.0.1', '127.0.0.9'])('the server listens on %s', async (host) => {
    const { url } = await startTestServer({ host })
    expect((await fetch(`${url}/health`)).status).toBe(200)
  })

  it('a start on a port in use fails with the number of the port, and releases the store', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as AddressInfo
    const folder = mkdtempSync(join(tmpdir(), 'redrive-start-'))
    folders.push(folder)
    const store = { kind: 'sqlite', path: join(folder, 'store.db') } as const
    await expect(startTestServer({ port }, store)).rejects.toMatchObject({
      code: 'PORT_TAKEN',
      message: `port ${port} on 127.0.0.1 is taken by another program`,
    })
    other.close()
    const { url } = await startTestServer({}, store)
    expect((await fetch(`${url}/api/v1/queues`)).status).toBe(200)
    expect(existsSync(store.path)).toBe(true)
  })

  it('a second server on the same SQLite file is refused, and the first server keeps serving', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-start-'))
    folders.push(folder)
    const store = { kind: 'sqlite', path: join(folder, 'store.db') } as const
    const first = await startTestServer({}, store)
    await expect(startTestServer({ 'sqlite.lock_wait': 0 }, store)).rejects.toMatchObject({
      code: 'STORE_LOCKED',
    })
    expect((await fetch(`${first.url}/health`)).status).toBe(200)
  })
})

describe('the stop', () => {
  it('a stop waits for requests in progress, refuses new requests and then closes all connections', async () => {
    const { held, release, entered } = createHeldRoute()
    const { port, drain } = await startTestApi({ routes: [held] })
    const busy = await connectRaw(port)
    const idle = await connectRaw(port)
    busy.write(formatRequest('/held'))
    await entered

    const stopped = drain.stop(60_000)
    expect(drain.signal.aborted).toBe(true)
    idle.write(formatRequest('/held'))
    const refused = await idle.readToEnd()
    expect(refused).toMatch(/^HTTP\/1\.1 503 [\s\S]*"SHUTTING_DOWN"/)
    expect(refused).toMatch(/\r\nconnection: close\r\n/i)
    expect(refused).toMatch(/\r\nretry-after: 1\r\n/i)
    await expect(fetch(`http://127.0.0.1:${port}/held`)).rejects.toThrow()

    release()
    expect(await busy.readToEnd()).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*done$/i)
    expect(await stopped).toBe(0)
  })

  it('a stop closes the connections of requests that do not finish within its grace period', async () => {
    const { held, entered } = createHeldRoute()
    const { port, drain } = await startTestApi({ routes: [held] })
    const busy = await connectRaw(port)
    busy.write(formatRequest('/held'))
    await entered
    expect(await drain.stop(20)).toBe(1)
    expect(await busy.readToEnd()).toBe('')
  })

  it('a second stop with a shorter grace period ends the first stop earlier', async () => {
    const { held, entered } = createHeldRoute()
    const { port, drain } = await startTestApi({ routes: [held] })
    const busy = await connectRaw(port)
    busy.write(formatRequest('/held'))
    await entered
    const patient = drain.stop(60_000)
    expect(await drain.stop(0)).toBe(1)
    expect(await patient).toBe(1)
  })

  it('a stop closes idle connections at once when no request is in progress', async () => {
    const { port, drain } = await startTestApi()
    const idle = await connectRaw(port)
    idle.write(formatRequest('/health'))
    await idle.readTo('}')
    await drain.stop(60_000)
    await idle.readToEnd()
    expect(drain.countConnections()).toBe(0)
  })

  it('a stop that ends waiting lease calls logs no warning for each of them', async () => {
    const server = await startTestServer()
    const call = (name: string, body: object): Promise<Response> =>
      fetch(`${server.url}/v1/${name}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const timeouts = { lease_timeout: '1m', expire_timeout: '1h' }
    await call('queues.create', { queue_name: 'empty', requested_partitions: 1, ...timeouts })
    const leases = ['a', 'b', 'c'].map((client_id) =>
      call('queue.lease', { queue_name: 'empty', client_id, batch_size: 1, request_timeout: '1m' }),
    )
    const countWaiting = async (): Promise<number> => {
      const stats = (await (await call('queue.stats', { queue_name: 'empty' })).json()) as {
        logicalQueues: { lease_waiting?: number }[]
      }
      return stats.logicalQueues[0]?.lease_waiting ?? 0
    }
    await expect.poll(countWaiting).toBe(3)
    await server.stop(10_000)
    expect((await Promise.all(leases)).map(({ status }) => status)).toEqual([453, 453, 453])
    expect(server.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
  })

  it('a stop closes the store, so that another server can open it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-stop-'))
    folders.push(folder)
    const store = { kind: 'sqlite', path: join(folder, 'store.db') } as const
    const first = await startTestServer({}, store)
    await Promise.all([first.stop(1_000), first.stop(1_000)])
    await first.stop(1_000)
    const second = await startTestServer({}, store)
    expect((await fetch(`${second.url}/health`)).status).toBe(200)
  })
})
