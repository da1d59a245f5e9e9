import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type Client, createClient, Dead, RetryLater, type Worker } from '../../../client/src/index.ts'
import { createCountingClock } from '../../../client/test/counting-clock.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

const folders: string[] = []
const workers: Worker[] = []
const children: ChildProcess[] = []
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop({ withinMs: 0 })))
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function aStore() {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-worker-'))
  folders.push(folder)
  return { kind: 'sqlite', path: join(folder, 'store.db') } as const
}

async function aFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A server in a process of its own, which a test can kill. */
function serve(port: number, store: string): ChildProcess {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const args = [main, 'serve', '--port', String(port), '--store', store]
  const child = spawn(process.execPath, args, { stdio: 'ignore' })
  children.push(child)
  return child
}

/** A fetch that counts calls by path. */
function countingFetch() {
  const calls = new Map<string, number>()
  const counting: typeof fetch = (input, init) => {
    const { pathname } = new URL(String(input))
    calls.set(pathname, (calls.get(pathname) ?? 0) + 1)
    return fetch(input, init)
  }
  return { calls, fetch: counting }
}

async function aClient(over: Partial<Parameters<Client['createQueue']>[0]> = {}) {
  const { url } = await startTestServer()
  const client = createClient({ url })
  await client.createQueue({ name: 'jobs', lease: '1m', expire: '24h', ...over })
  return client
}

const work: (client: Client, ...args: Parameters<Client['work']>) => Worker = (
  client,
  queue,
  handler,
  over,
) => {
  const worker = client.work(queue, handler, { waitMs: 200, ...over })
  workers.push(worker)
  return worker
}

const counts = async (client: Client) => (await client.getQueue('jobs')).counts
const silent = { onError: () => {} }

describe('a worker', () => {
  it('loses none of 5,000 items, with failing handlers and a server that restarts in the middle', async () => {
    const store = aStore()
    const first = await startTestServer({}, store)
    const port = Number(new URL(first.url).port)
    const { calls, fetch } = countingFetch()
    const client = createClient({ url: first.url, fetch })
    await client.createQueue({ name: 'jobs', lease: '5s', expire: '24h', partitions: 2 })
    const total = 5_000
    for (let at = 0; at < total; at += 500) {
      await client.produce(
        'jobs',
        Array.from({ length: 500 }, (_, index) => String(at + index)),
      )
    }

    const processed = new Map<string, number>()
    let failures = 0
    let seed = 1
    const chance = () => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const handler = async (item: { text(): string }) => {
      if (chance() < 0.1) {
        failures++
        throw new Error(`unlucky number ${failures % 5}`)
      }
      processed.set(item.text(), (processed.get(item.text()) ?? 0) + 1)
    }
    const troubles: string[] = []
    const options = {
      concurrency: 50,
      backoffMsMax: 500,
      onError: (_: unknown, { during }: { during: string }) => void troubles.push(during),
    }
    const both = [work(client, 'jobs', handler, options), work(client, 'jobs', handler, options)]
    await pollUntil(
      async () => processed.size,
      (size) => size > 1_500,
    )
    await first.stop(0)
    expect(processed.size).toBeLessThan(total)
    await startTestServer({ port }, store)
    await pollUntil(
      () => counts(client),
      ({ completed }) => completed === total,
      25_000,
    )
    await Promise.all(both.map((worker) => worker.stop()))

    expect(processed.size).toBe(total)
    expect(failures).toBeGreaterThan(300)
    expect(troubles).toContain('lease')
    expect(await counts(client)).toMatchObject({
      waiting: 0,
      leased: 0,
      scheduled: 0,
      completed: total,
      accepted: total,
    })
    expect(calls.get('/v1/queue.complete')).toBeLessThan(total / 5)
    expect(calls.get('/v1/queue.lease')).toBeLessThan(total / 5)
  })

  it('loses nothing when the server is killed, and comes back to it by itself', async () => {
    const store = aStore()
    const port = await aFreePort()
    const client = createClient({ url: `http://127.0.0.1:${port}`, retriesMax: 100, backoffMsMax: 100 })
    const first = serve(port, store.path)
    await client.createQueue({ name: 'jobs', lease: '3s', expire: '24h' })
    const total = 2_000
    for (let at = 0; at < total; at += 500) {
      await client.produce(
        'jobs',
        Array.from({ length: 500 }, (_, index) => String(at + index)),
      )
    }
    const processed = new Set<string>()
    const handler = (item: { text(): string }) => void processed.add(item.text())
    const worker = work(client, 'jobs', handler, { ...silent, concurrency: 20, backoffMsMax: 200 })
    await pollUntil(
      async () => processed.size,
      (size) => size > 300,
    )
    first.kill('SIGKILL')
    await once(first, 'exit')
    expect(processed.size).toBeLessThan(total)
    serve(port, store.path)
    await pollUntil(
      () => counts(client),
      ({ completed }) => completed === total,
      25_000,
    )
    await worker.stop()
    expect(processed.size).toBe(total)
    expect(await counts(client)).toMatchObject({ accepted: total, waiting: 0, leased: 0 })
  }, 60_000)

  it('stops gracefully: nothing stays leased, and the rest of the queue is left alone', async () => {
    const { url } = await startTestServer()
    const { clock, timers } = createCountingClock()
    const client = createClient({ url, clock })
    await client.createQueue({ name: 'jobs', lease: '1m', expire: '24h' })
    await client.produce(
      'jobs',
      Array.from({ length: 1_000 }, (_, index) => String(index)),
    )
    let handled = 0
    const handler = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      handled++
    }
    const worker = work(client, 'jobs', handler, { concurrency: 20, prefetch: 20 })
    await pollUntil(
      async () => handled,
      (count) => count > 100,
    )
    await worker.stop()
    expect(await counts(client)).toMatchObject({ leased: 0, waiting: 1_000 - handled, completed: handled })
    expect(worker.counts()).toMatchObject({
      running: 0,
      prefetched: 0,
      settling: 0,
      lost: 0,
      completed: handled,
    })
    expect(handled).toBeLessThan(1_000)
    await worker.stop()
    expect(timers()).toBe(0)
  })

  it('leaves no lease behind when items come in just as it stops', async () => {
    const client = await aClient()
    for (let round = 0; round < 40; round++) {
      const worker = work(client, 'jobs', () => {}, { waitMs: 60_000 })
      await pollUntil(
        async () => (await client.getQueueStats('jobs')).leaseWaiting,
        (count) => count === 1,
      )
      const before = await counts(client)
      await Promise.all([worker.stop(), client.produce('jobs', String(round))])
      // What was on its way to a lease call that was ended is being put back.
      const after = await pollUntil(
        () => counts(client),
        ({ leased }) => leased === 0,
        1_000,
      )
      expect(after.completed - before.completed + after.waiting).toBe(1)
      // Nobody had it, so nobody's attempt is counted.
      expect(await client.listItems('jobs')).toMatchObject(after.waiting === 1 ? [{ attempts: 0 }] : [])
      await client.clearQueue('jobs', { isWaiting: true })
    }
  })

  it('stops at once when it is idle, or was only just started', async () => {
    const client = await aClient()
    const startedMs = performance.now()
    for (let round = 0; round < 10; round++) {
      const worker = work(client, 'jobs', () => {}, { waitMs: 60_000 })
      if (round % 2 === 0) {
        await pollUntil(
          async () => (await client.getQueueStats('jobs')).leaseWaiting,
          (count) => count === 1,
        )
      }
      await worker.stop()
      expect((await client.getQueueStats('jobs')).leaseWaiting).toBe(0)
    }
    expect(performance.now() - startedMs).toBeLessThan(5_000)
  })

  it('stops without haste at a server that cannot end lease calls, and loses nothing there', async () => {
    const { url } = await startTestServer()
    const without: typeof fetch = async (input, init) =>
      String(input).endsWith('/leases/cancel') ? new Response('', { status: 404 }) : fetch(input, init)
    const client = createClient({ url, fetch: without })
    await client.createQueue({ name: 'jobs', lease: '1m', expire: '24h' })
    const worker = work(client, 'jobs', () => {}, { waitMs: 1_500 })
    await pollUntil(
      async () => (await client.getQueueStats('jobs')).leaseWaiting,
      (count) => count === 1,
    )
    const stopped = worker.stop()
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    await client.produce('jobs', 'just in time')
    await stopped
    expect(await counts(client)).toMatchObject({ completed: 1, leased: 0, waiting: 0 })
  })

  it('does not wait for a handler for ever: its signal aborts, and its item goes back with the error', async () => {
    const client = await aClient()
    await client.produce('jobs', ['heeds', 'ignores'])
    const handler = (item: { text(): string }, { signal }: { signal: AbortSignal }) =>
      new Promise((_, reject) => {
        if (item.text() === 'heeds') signal.addEventListener('abort', () => reject(signal.reason))
      })
    const worker = work(client, 'jobs', handler, silent)
    await pollUntil(
      async () => worker.counts().running,
      (running) => running === 2,
    )
    const startedMs = performance.now()
    await worker.stop({ withinMs: 50 })
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect(worker.counts()).toMatchObject({ retried: 1 })
    expect(await counts(client)).toMatchObject({ waiting: 1, leased: 1 })
  })

  it('retries later and gives up as the handler says, and tells why', async () => {
    const store = aStore()
    const { url, stop } = await startTestServer({}, store)
    const client = createClient({ url })
    await client.createQueue({ name: 'dead', lease: '1m', expire: '24h' })
    await client.createQueue({ name: 'jobs', lease: '1m', expire: '24h', deadQueue: 'dead', attemptsMax: 2 })
    await client.produce('jobs', ['later', 'dead', 'fails', 'fine'])
    const retried: string[] = []
    const handler = async (item: { text(): string }) => {
      const text = item.text()
      if (text === 'later') throw new RetryLater('not yet', { afterMs: 3_600_000 })
      if (text === 'dead') throw new Dead('never', { reason: 'bad_input', cause: new TypeError('wrong') })
      if (text === 'fails') throw new Error('failed')
    }
    const worker = work(client, 'jobs', handler, {
      ...silent,
      onRetried: (item, error) => void retried.push(`${item.text()}: ${(error as Error).message}`),
    })
    await pollUntil(
      () => counts(client),
      ({ completed, dead_lettered }) => completed === 1 && dead_lettered === 2,
    )
    await worker.stop()
    const [scheduled] = await client.listScheduledItems('jobs')
    expect(scheduled?.text()).toBe('later')
    expect(Date.parse(scheduled?.availableAt ?? '') - Date.now()).toBeGreaterThan(3_500_000)
    expect((await client.listItems('dead')).map((item) => item.text()).toSorted()).toEqual(['dead', 'fails'])
    const fails = Array.from({ length: 3 }, () => 'fails: failed')
    expect(retried.toSorted()).toEqual(['dead: never', ...fails, 'later: not yet'])

    // The letters' failures have no call of their own yet: look where they are kept.
    await stop(0)
    const storage = await openStorage(store)
    const letters = await storage.listItems({ queue: 'dead', countMax: 10 })
    await storage.close()
    const failures = letters.map(({ payload, failure }) => [Buffer.from(payload).toString(), failure])
    expect(Object.fromEntries(failures)).toMatchObject({
      dead: {
        errorClass: 'TypeError',
        message: 'never: wrong',
        reason: 'bad_input',
        worker: worker.clientId,
      },
      fails: { errorClass: 'Error', message: 'failed', attempts: 3, stack: expect.stringContaining('at ') },
    })
  })

  it('tells a handler that its lease was lost, and forgets what it did', async () => {
    const client = await aClient({ lease: '400ms' })
    await client.produce('jobs', 'slow')
    const lost: string[] = []
    let attempts = 0
    const handler = async (_: unknown, { signal }: { signal: AbortSignal }) => {
      if (++attempts > 1) return
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const worker = work(client, 'jobs', handler, {
      isExtending: false,
      onLost: (item) => void lost.push(item.text()),
    })
    await pollUntil(
      () => counts(client),
      ({ completed }) => completed === 1,
    )
    await worker.stop()
    expect(lost).toEqual(['slow'])
    expect(attempts).toBe(2)
    expect(worker.counts()).toMatchObject({ leased: 2, completed: 1, lost: 1, retried: 0 })
  })

  it('waits for a queue that is not there yet, says when there is nothing to do, and stops by its signal', async () => {
    const { url } = await startTestServer()
    const client = createClient({ url })
    const codes: unknown[] = []
    const stopping = new AbortController()
    let idle = 0
    const worker = work(client, 'jobs', () => {}, {
      waitMs: 50,
      signal: stopping.signal,
      onError: (error) => void codes.push((error as { code: string }).code),
      onIdle: () => {
        idle++
        throw new Error('not the worker’s business')
      },
    })
    await pollUntil(
      async () => codes.length,
      (length) => length > 0,
    )
    await client.createQueue({ name: 'jobs', lease: '1m', expire: '24h' })
    await client.produce('jobs', 'x')
    await pollUntil(
      async () => idle,
      (count) => count > 1,
    )
    stopping.abort()
    await worker.stopped
    expect(new Set(codes)).toEqual(new Set(['QUEUE_NOT_FOUND']))
    expect(worker.counts()).toMatchObject({ completed: 1 })
    expect((await client.getQueueStats('jobs')).leaseWaiting).toBe(0)
  })
})
