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

function createStoreTarget() {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-worker-'))
  folders.push(folder)
  return { kind: 'sqlite', path: join(folder, 'store.db') } as const
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a server in its own process, so that a test can kill it. */
function spawnServer(port: number, store: string): ChildProcess {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const args = [main, 'serve', '--port', String(port), '--store', store]
  const child = spawn(process.execPath, args, { stdio: 'ignore' })
  children.push(child)
  return child
}

/** Creates a fetch that counts calls by path. */
function createCountingFetch() {
  const calls = new Map<string, number>()
  const counting: typeof fetch = (input, init) => {
    const { pathname } = new URL(String(input))
    calls.set(pathname, (calls.get(pathname) ?? 0) + 1)
    return fetch(input, init)
  }
  return { calls, fetch: counting }
}

async function createClientWithQueue(over: Partial<Parameters<Client['createQueue']>[0]> = {}) {
  const { url } = await startTestServer()
  const client = createClient({ url })
  await client.createQueue({ name: 'jobs', ...over })
  return client
}

const startWorker: (client: Client, ...args: Parameters<Client['work']>) => Worker = (
  client,
  queue,
  handler,
  over,
) => {
  const worker = client.work(queue, handler, { waitMs: 200, ...over })
  workers.push(worker)
  return worker
}

const readCounts = async (client: Client) => (await client.getQueue('jobs')).counts
const ignoreErrors = { onError: () => {} }

describe('a worker', () => {
  it('workers process all of 5,000 items, although handlers fail and the server restarts', async () => {
    const store = createStoreTarget()
    const first = await startTestServer({}, store)
    const port = Number(new URL(first.url).port)
    const { calls, fetch } = createCountingFetch()
    const client = createClient({ url: first.url, fetch })
    await client.createQueue({ name: 'jobs', partitions: 2, policy: { leaseTimeout: '5s' } })
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
    const serverStopped = Promise.withResolvers<void>()
    const handler = async (item: { text(): string }) => {
      if (processed.size >= 1_500) await serverStopped.promise
      if (chance() < 0.1) {
        failures++
        throw new Error(`unlucky number ${failures % 5}`)
      }
      processed.set(item.text(), (processed.get(item.text()) ?? 0) + 1)
    }
    const failedSteps: string[] = []
    const options = {
      concurrency: 50,
      backoffMsMax: 500,
      onError: (_: unknown, { during }: { during: string }) => void failedSteps.push(during),
    }
    const both = [
      startWorker(client, 'jobs', handler, options),
      startWorker(client, 'jobs', handler, options),
    ]
    await pollUntil(
      async () => processed.size,
      (size) => size >= 1_500,
    )
    await first.stop(0)
    serverStopped.resolve()
    await startTestServer({ port }, store)
    await pollUntil(
      () => readCounts(client),
      ({ completed }) => completed === total,
      90_000,
    )
    await Promise.all(both.map((worker) => worker.stop()))

    expect(processed.size).toBe(total)
    expect(failures).toBeGreaterThan(300)
    expect(failedSteps).toContain('lease')
    expect(await readCounts(client)).toMatchObject({
      waiting: 0,
      leased: 0,
      scheduled: 0,
      completed: total,
      accepted: total,
    })
    expect(calls.get('/v1/queue.complete')).toBeLessThan(total / 5)
    expect(calls.get('/v1/queue.lease')).toBeLessThan(total / 5)
  }, 120_000)

  it('a worker reconnects to a server that was killed, and processes every item', async () => {
    const store = createStoreTarget()
    const port = await findFreePort()
    const client = createClient({ url: `http://127.0.0.1:${port}`, retriesMax: 1_000, backoffMsMax: 100 })
    const first = spawnServer(port, store.path)
    await client.createQueue({ name: 'jobs', policy: { leaseTimeout: '3s' } })
    const total = 2_000
    for (let at = 0; at < total; at += 500) {
      await client.produce(
        'jobs',
        Array.from({ length: 500 }, (_, index) => String(at + index)),
      )
    }
    const processed = new Set<string>()
    const serverKilled = Promise.withResolvers<void>()
    const handler = async (item: { text(): string }) => {
      if (processed.size >= 300) await serverKilled.promise
      processed.add(item.text())
    }
    const worker = startWorker(client, 'jobs', handler, {
      ...ignoreErrors,
      concurrency: 20,
      backoffMsMax: 200,
    })
    await pollUntil(
      async () => processed.size,
      (size) => size >= 300,
    )
    first.kill('SIGKILL')
    await once(first, 'exit')
    serverKilled.resolve()
    spawnServer(port, store.path)
    await pollUntil(
      () => readCounts(client),
      ({ completed }) => completed === total,
      90_000,
    )
    await worker.stop()
    expect(processed.size).toBe(total)
    expect(await readCounts(client)).toMatchObject({ accepted: total, waiting: 0, leased: 0 })
  }, 120_000)

  it('a graceful stop leaves no item leased, and does not lease the rest of the queue', async () => {
    const { url } = await startTestServer()
    const { clock, timers } = createCountingClock()
    const client = createClient({ url, clock })
    await client.createQueue({ name: 'jobs' })
    await client.produce(
      'jobs',
      Array.from({ length: 1_000 }, (_, index) => String(index)),
    )
    let handled = 0
    const stopCalled = Promise.withResolvers<void>()
    const handler = async () => {
      if (handled >= 100) await stopCalled.promise
      handled++
    }
    const worker = startWorker(client, 'jobs', handler, { concurrency: 20, prefetch: 20 })
    await pollUntil(
      async () => worker.counts(),
      ({ running, prefetched }) => handled >= 100 && running === 20 && prefetched > 0,
    )
    const stopped = worker.stop()
    stopCalled.resolve()
    await stopped
    expect(await readCounts(client)).toMatchObject({
      leased: 0,
      waiting: 1_000 - handled,
      completed: handled,
    })
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

  it('a worker leaves no item leased when items arrive while it stops', async () => {
    const client = await createClientWithQueue()
    for (let round = 0; round < 40; round++) {
      const worker = startWorker(client, 'jobs', () => {}, { waitMs: 60_000 })
      await pollUntil(
        async () => (await client.getQueueStats('jobs')).leaseWaiting,
        (count) => count === 1,
      )
      const before = await readCounts(client)
      await Promise.all([worker.stop(), client.produce('jobs', String(round))])
      // The server may still be returning an item that it leased for the cancelled call.
      const after = await pollUntil(
        () => readCounts(client),
        ({ leased }) => leased === 0,
      )
      expect(after.completed - before.completed + after.waiting).toBe(1)
      // The item reached no worker, so the lease does not count as an attempt.
      expect(await client.listItems('jobs')).toMatchObject(after.waiting === 1 ? [{ attempts: 0 }] : [])
      await client.clearQueue('jobs', { isWaiting: true })
    }
  })

  it('an idle or newly started worker stops without waiting for its lease call to end', async () => {
    const client = await createClientWithQueue()
    for (let round = 0; round < 10; round++) {
      // Waiting for the end of this lease call would exceed the timeout of the test.
      const worker = startWorker(client, 'jobs', () => {}, { waitMs: 60_000 })
      if (round % 2 === 0) {
        await pollUntil(
          async () => (await client.getQueueStats('jobs')).leaseWaiting,
          (count) => count === 1,
        )
      }
      await worker.stop()
      expect((await client.getQueueStats('jobs')).leaseWaiting).toBe(0)
    }
  })

  it('without cancelLease on the server, a stopping worker processes the items of its last lease call', async () => {
    const { url } = await startTestServer()
    const cancelCalled = Promise.withResolvers<void>()
    const fetchWithoutCancel: typeof fetch = async (input, init) => {
      if (!String(input).endsWith('/leases/cancel')) return fetch(input, init)
      cancelCalled.resolve()
      return new Response('', { status: 404 })
    }
    const client = createClient({ url, fetch: fetchWithoutCancel })
    await client.createQueue({ name: 'jobs' })
    const worker = startWorker(client, 'jobs', () => {}, { waitMs: 15_000 })
    await pollUntil(
      async () => (await client.getQueueStats('jobs')).leaseWaiting,
      (count) => count === 1,
    )
    const stopped = worker.stop()
    await cancelCalled.promise
    await client.produce('jobs', 'produced during the stop')
    await stopped
    expect(await readCounts(client)).toMatchObject({ completed: 1, leased: 0, waiting: 0 })
  })

  it('a stop with a bound aborts running handlers, and retries the items whose handlers reject', async () => {
    const client = await createClientWithQueue({ policy: { retry: { kind: 'fixed', delays: ['0s'] } } })
    await client.produce('jobs', ['heeds', 'ignores'])
    const handler = (item: { text(): string }, { signal }: { signal: AbortSignal }) =>
      new Promise((_, reject) => {
        if (item.text() === 'heeds') signal.addEventListener('abort', () => reject(signal.reason))
      })
    const worker = startWorker(client, 'jobs', handler, ignoreErrors)
    await pollUntil(
      async () => worker.counts().running,
      (running) => running === 2,
    )
    await worker.stop({ withinMs: 50 })
    expect(worker.counts()).toMatchObject({ retried: 1 })
    expect(await readCounts(client)).toMatchObject({ waiting: 1, leased: 1 })
  })

  it('a handler decides whether its item is retried later or dead, and the failure is stored', async () => {
    const store = createStoreTarget()
    const { url, stop } = await startTestServer({}, store)
    const client = createClient({ url })
    const retry = { kind: 'fixed', delays: ['0s'] } as const
    await client.createQueue({ name: 'dead' })
    await client.createQueue({ name: 'jobs', policy: { deadQueue: 'dead', attemptsMax: 2, retry } })
    await client.produce('jobs', ['later', 'dead', 'fails', 'fine'])
    const retried: string[] = []
    const handler = async (item: { text(): string }) => {
      const text = item.text()
      if (text === 'later') throw new RetryLater('not yet', { afterMs: 3_600_000 })
      if (text === 'dead') throw new Dead('never', { errorCode: 'bad_input', cause: new TypeError('wrong') })
      if (text === 'fails') throw new Error('failed')
    }
    const worker = startWorker(client, 'jobs', handler, {
      ...ignoreErrors,
      onRetried: (item, error) => void retried.push(`${item.text()}: ${(error as Error).message}`),
    })
    await pollUntil(
      () => readCounts(client),
      ({ completed, deadLettered }) => completed === 1 && deadLettered === 2,
    )
    await worker.stop()
    const [scheduled] = await client.listScheduledItems('jobs')
    expect(scheduled?.text()).toBe('later')
    expect(Date.parse(scheduled?.availableAt ?? '') - Date.now()).toBeGreaterThan(3_500_000)
    expect((await client.listItems('dead')).map((item) => item.text()).toSorted()).toEqual(['dead', 'fails'])
    const fails = Array.from({ length: 3 }, () => 'fails: failed')
    expect(retried.toSorted()).toEqual(['dead: never', ...fails, 'later: not yet'])

    // The client has no call that returns the failure of a letter, so read it from the store.
    await stop(0)
    const storage = await openStorage(store)
    const letters = await storage.listItems({ queue: 'dead', countMax: 10 })
    await storage.close()
    const failures = letters.map(({ payload, failure }) => [Buffer.from(payload).toString(), failure])
    expect(Object.fromEntries(failures)).toMatchObject({
      dead: {
        errorClass: 'TypeError',
        message: 'never: wrong',
        errorCode: 'bad_input',
        worker: worker.clientId,
      },
      fails: { errorClass: 'Error', message: 'failed', attempts: 3, stack: expect.stringContaining('at ') },
    })
  })

  it('the signal of a handler aborts when its lease ends, and its result is ignored', async () => {
    const client = await createClientWithQueue({ policy: { leaseTimeout: '400ms' } })
    await client.produce('jobs', 'slow')
    const lost: string[] = []
    let attempts = 0
    const handler = async (_: unknown, { signal }: { signal: AbortSignal }) => {
      if (++attempts > 1) return
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const worker = startWorker(client, 'jobs', handler, {
      isExtending: false,
      onLost: (item) => void lost.push(item.text()),
    })
    await pollUntil(
      () => readCounts(client),
      ({ completed }) => completed === 1,
    )
    await worker.stop()
    expect(lost).toEqual(['slow'])
    expect(attempts).toBe(2)
    expect(worker.counts()).toMatchObject({ leased: 2, completed: 1, lost: 1, retried: 0 })
  })

  it('a worker waits for its queue to be created, reports idleness, and stops when its signal aborts', async () => {
    const { url } = await startTestServer()
    const client = createClient({ url })
    const codes: unknown[] = []
    const stopping = new AbortController()
    let idle = 0
    const worker = startWorker(client, 'jobs', () => {}, {
      waitMs: 50,
      signal: stopping.signal,
      onError: (error) => void codes.push((error as { code: string }).code),
      onIdle: () => {
        idle++
        throw new Error('an error of a callback, which the worker ignores')
      },
    })
    await pollUntil(
      async () => codes.length,
      (length) => length > 0,
    )
    await client.createQueue({ name: 'jobs' })
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
