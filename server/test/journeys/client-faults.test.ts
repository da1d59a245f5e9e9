import { afterEach, describe, expect, it } from 'vitest'
import { type ClientOptions, createClient, type Worker } from '../../../client/src/index.ts'
import { type Fault, startFaultyProxy } from '../http/faulty-proxy.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

const workers: Worker[] = []
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop({ withinMs: 0 })))
})

/**
 * Starts a server, a client that reaches it directly, and a client that reaches it through a faulty network.
 */
async function startFaultyNetwork(
  chooseFault: (path: string, requestNumber: number) => Fault,
  over: ClientOptions = {},
) {
  const { url } = await startTestServer()
  const direct = createClient({ url })
  await direct.createQueue({ name: 'jobs', policy: { leaseTimeout: '2s' } })
  let requestNumber = 0
  const proxy = await startFaultyProxy(url, (path) => chooseFault(path, ++requestNumber))
  const client = createClient({ url: proxy.url, backoffMsMin: 1, ...over })
  const counts = async () => (await direct.getQueue('jobs')).counts
  return { direct, client, counts, paths: proxy.paths }
}

const onFirstRequest = (fault: Fault) => (_: string, requestNumber: number) =>
  requestNumber === 1 ? fault : 'none'

describe('a produce', () => {
  it.each([
    ['lose-answer', 1],
    ['cut-answer', 1],
    ['lose-request', 0],
  ] as const)(
    'after %s a produce is not repeated, and its error reports an unknown outcome',
    async (fault, stored) => {
      const { client, counts, paths } = await startFaultyNetwork(onFirstRequest(fault))
      await expect(client.produce('jobs', 'x')).rejects.toMatchObject({
        code: 'CONNECTION_LOST',
        isRetryable: false,
        isOutcomeUnknown: true,
      })
      expect(paths).toEqual(['/v1/queue.produce'])
      expect(await counts()).toMatchObject({ accepted: stored })
    },
  )

  it('a produce that allows duplicates is repeated, and can store its item twice', async () => {
    const { client, counts } = await startFaultyNetwork(onFirstRequest('lose-answer'))
    await client.produce('jobs', 'x', { isDuplicateAllowed: true })
    expect(await counts()).toMatchObject({ accepted: 2 })
  })

  it('a produce waits for a server that is not up yet, and stores its item once', async () => {
    const { url, stop } = await startTestServer()
    await stop(0)
    let calls = 0
    const countingFetch: typeof fetch = (input, init) => {
      calls++
      return fetch(input, init)
    }
    const client = createClient({ url, retriesMax: 1_000, backoffMsMax: 50, fetch: countingFetch })
    const created = client.createQueue({ name: 'jobs' })
    const produced = created.then(() => client.produce('jobs', 'x'))
    // The second call proves that the first call failed.
    await pollUntil(
      async () => calls,
      (count) => count >= 2,
    )
    await startTestServer({ port: Number(new URL(url).port) })
    await produced
    expect((await client.getQueue('jobs')).counts).toMatchObject({ accepted: 1 })
  })
})

describe('a complete whose answer is lost', () => {
  it('a complete whose answer is lost is repeated, and its error reports an unknown outcome', async () => {
    const { client, direct, counts } = await startFaultyNetwork(onFirstRequest('lose-answer'))
    await direct.produce('jobs', 'x')
    const { partition, items } = await direct.lease('jobs', { clientId: 'c' })
    const ids = items.map(({ id }) => id)
    await expect(client.complete('jobs', partition, ids)).rejects.toMatchObject({
      code: 'ITEM_NOT_FOUND',
      itemId: ids[0],
      isOutcomeUnknown: true,
    })
    expect(await counts()).toMatchObject({ completed: 1, leased: 0 })
  })

  it('a lost complete answer costs a worker few additional calls, regardless of the number of items', async () => {
    let isLost = false
    const fault = (path: string): Fault => {
      if (path !== '/v1/queue.complete' || isLost) return 'none'
      isLost = true
      return 'lose-answer'
    }
    const { client, direct, counts, paths } = await startFaultyNetwork(fault)
    await direct.produce(
      'jobs',
      Array.from({ length: 100 }, (_, index) => String(index)),
    )
    const seen: string[] = []
    const worker = client.work('jobs', (item) => void seen.push(item.text()), {
      concurrency: 100,
      waitMs: 200,
      onError: () => {},
    })
    workers.push(worker)
    await pollUntil(counts, ({ completed }) => completed === 100)
    await worker.stop()
    expect(seen).toHaveLength(100)
    const completes = paths.filter((path) => path === '/v1/queue.complete')
    expect(completes.length).toBeLessThanOrEqual(5)
    expect(worker.counts().unknown + worker.counts().completed).toBe(100)
    expect(worker.counts()).toMatchObject({ lost: 0, retried: 0 })
  })
})

describe('a worker on a network with faults in 10 % of the requests', () => {
  it('a worker processes every item on a network with faults in 10 % of the requests', async () => {
    let seed = 7
    const chance = () => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const faults: readonly Fault[] = ['lose-request', 'lose-answer', 'cut-answer']
    const fault = () => (chance() < 0.1 ? (faults[Math.floor(chance() * 3)] ?? 'none') : 'none')
    const { client, direct, counts } = await startFaultyNetwork(fault)
    const total = 1_000
    await direct.produce(
      'jobs',
      Array.from({ length: total }, (_, index) => String(index)),
    )
    const seen = new Set<string>()
    const handler = (item: { text(): string }) => {
      if (chance() < 0.05) throw new Error('unlucky')
      seen.add(item.text())
    }
    const options = { concurrency: 20, backoffMsMax: 100, waitMs: 500, onError: () => {} }
    workers.push(client.work('jobs', handler, options), client.work('jobs', handler, options))
    await pollUntil(counts, ({ completed }) => completed === total, 90_000)
    await Promise.all(workers.map((worker) => worker.stop()))
    expect(seen.size).toBe(total)
    expect(await counts()).toMatchObject({ waiting: 0, leased: 0, accepted: total, completed: total })
  }, 120_000)
})
