/**
 * Sends thousands of random, mostly invalid requests. Each answer must have a status of the contract other
 * than 500, and the server must keep working with bounded memory.
 *
 * REDRIVE_FUZZ_REQUESTS sets how many (`npm run fuzz`: 100,000 per store); REDRIVE_TEST_SEED repeats a run.
 */
import { Agent, request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { type ServerProcess, startServerProcess } from '../http/server-process.ts'
import { withRandom } from '../random-test.ts'
import { type KnownIds, oddRequest } from './odd-requests.ts'

const count = Number(process.env.REDRIVE_FUZZ_REQUESTS ?? 4_000)
const known = new Set([200, 400, 453, 454, 455, 501])
const workers = 8
const idsKept = 20
/** `npm test` sends too few requests to tell a leak from a busy machine. */
const isMemoryChecked = process.env.REDRIVE_FUZZ_REQUESTS !== undefined
/** Counted after the warm-up. A leak with every request would be far more. */
const growthBytesMax = 200 * 2 ** 20

type Memory = Readonly<{ rss: number; heap: number }>
/**
 * `before`: when it is warm. `after`: at the end, the lowest of several looks, so that garbage does not
 * count.
 */
type Report = Readonly<{
  statuses: ReadonlyMap<number, number>
  before: Memory
  after: Memory
  seconds: number
}>

async function fuzz({ url }: ServerProcess, random: () => number): Promise<Report> {
  const agent = new Agent({ keepAlive: true, maxSockets: workers })
  const ids: KnownIds = []
  const send = (path: string, headers: Record<string, string>, body: Uint8Array): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}${path}`, { method: 'POST', agent, headers }, async (response) => {
        const answer = Buffer.concat(await response.toArray()).toString('latin1')
        // In JSON or protobuf, an id looks like nothing else.
        if (path === '/v1/queue.lease') ids.unshift(...(answer.match(/\b[0-9A-Za-z]{27}\b/g) ?? []))
        ids.length = Math.min(ids.length, idsKept)
        resolve(response.statusCode ?? 0)
      })
      sent.on('error', reject)
      sent.end(body)
    })
  for (const name of ['q', 'd']) {
    const spec = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 2 }
    await send('/v1/queues.create', {}, Buffer.from(JSON.stringify({ queue_name: name, ...spec })))
  }

  const statuses = new Map<number, number>()
  const work = async (share: number): Promise<void> => {
    for (let sent = 0; sent < share; sent++) {
      const odd = oddRequest(random, ids)
      const status = await send(odd.path, odd.headers, odd.body)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (!known.has(status)) {
        throw new Error(
          `${status} for ${odd.path} ${JSON.stringify(odd.headers)} ${odd.body.toString('base64')}`,
        )
      }
    }
  }
  const round = (requests: number) =>
    Promise.all(Array.from({ length: workers }, () => work(Math.ceil(requests / workers))))
  const startedMs = performance.now()
  try {
    await round(count / 5)
    const before = await memoryOf(url)
    await round((count * 3) / 5)
    const looks: Memory[] = []
    for (let part = 0; part < 10; part++) {
      await round(count / 50)
      looks.push(await memoryOf(url))
    }
    const after = {
      rss: Math.min(...looks.map(({ rss }) => rss)),
      heap: Math.min(...looks.map(({ heap }) => heap)),
    }
    expect(statuses.get(200) ?? 0).toBeGreaterThan(0)
    expect(await send('/v1/queues.list', {}, Buffer.from('{}'))).toBe(200)
    return { statuses, before, after, seconds: (performance.now() - startedMs) / 1_000 }
  } finally {
    agent.destroy()
  }
}

/** As the server itself tells. */
async function memoryOf(url: string): Promise<Memory> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN)
  return { rss: read('process_resident_memory_bytes'), heap: read('nodejs_heap_size_used_bytes') }
}

describe.each(['SQLite memory', 'PostgreSQL'] as const)('a server on %s', (store) => {
  it('every random request is answered with a status of the contract', {
    ...needsOf(store),
    timeout: 3_600_000,
  }, async () => {
    const place = await createTestStore(store)
    try {
      const server = await startServerProcess(place.target)
      const { statuses, before, after, seconds } = await withRandom(({ next }) => fuzz(server, next))
      const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
      const requests = [...statuses.values()].reduce((sum, times) => sum + times, 0)
      console.log(
        `${store}: ${requests} requests in ${seconds.toFixed(1)} s;`,
        `rss ${mib(before.rss)} → ${mib(after.rss)}, heap ${mib(before.heap)} → ${mib(after.heap)};`,
        `answers ${JSON.stringify(Object.fromEntries(statuses))}`,
      )
      if (isMemoryChecked) {
        expect(after.rss - before.rss).toBeLessThan(growthBytesMax)
        expect(after.heap - before.heap).toBeLessThan(growthBytesMax)
      }
      expect(server.lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
      expect(server.hasEnded(), server.stderrEnd()).toBe(false)
      await server.kill()
    } finally {
      await place.drop()
    }
  })
})
