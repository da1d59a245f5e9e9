import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Command } from '../../src/storage/contract/storage.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { startTestServer } from '../http/test-server.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** Starts a server whose store already contains the results of `commands`. */
async function startServerWith(commands: readonly Command[]) {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-queues-'))
  folders.push(folder)
  const store = { kind: 'sqlite', path: join(folder, 'store.db') } as const
  const storage = await openStorage(store)
  await storage.write(commands)
  await storage.close()
  return startTestServer({}, store)
}

type Page = { queues: { name: string; counts: Record<string, number> }[]; next_cursor: string | null }

const now = 1_767_323_045_678_901
/** In the year 2100, so that the server ends no lease and expires no item during the test. */
const farAhead = 4_102_444_800_000_000
const createQueue = (name: string, policy: object = {}): Command => ({
  op: 'create-queue',
  queue: { name, ...policy },
  now,
})

async function get<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T
}

describe('the list of queues', () => {
  it('the list of queues has pages in byte order of name, and contains each queue once', async () => {
    const names = ['a', 'B', 'é', 'a b', 'a/b', '{x}', 'z%20']
    const { url } = await startServerWith(names.map((name) => createQueue(name)))
    const seen: string[] = []
    let next: string | null = ''
    do {
      const cursor: string = next === '' ? '' : `&cursor=${next}`
      const page: Page = await get(`${url}/api/v1/queues?limit=2${cursor}`)
      expect(page.queues.length).toBeLessThanOrEqual(2)
      seen.push(...page.queues.map((queue) => queue.name))
      next = page.next_cursor
    } while (next !== null)
    expect(seen).toEqual(names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
  })

  it('the list of queues has no next page when the last page is exactly full', async () => {
    const { url } = await startServerWith(['a', 'b'].map((name) => createQueue(name)))
    expect(await get(`${url}/api/v1/queues?limit=2`)).toMatchObject({ next_cursor: null })
    const { next_cursor } = await get<Page>(`${url}/api/v1/queues?limit=1`)
    expect(await get(`${url}/api/v1/queues?limit=1&cursor=${next_cursor}`)).toMatchObject({
      queues: [{ name: 'b' }],
      next_cursor: null,
    })
  })
})

describe('a queue', () => {
  it('a queue shows its policy and its exact counts over all partitions', async () => {
    const item = { payload: Buffer.from('x') }
    const { url } = await startServerWith([
      createQueue('orders.dead'),
      createQueue('orders', {
        partitions: 2,
        deadQueue: 'orders.dead',
        attemptsMax: 3,
        leaseTimeoutUs: 90_000_000,
      }),
      { op: 'produce', queue: 'orders', partition: 0, items: [item, item], now: farAhead },
      { op: 'produce', queue: 'orders', partition: 1, items: [item], now: farAhead },
      { op: 'lease', queue: 'orders', partition: 0, holders: ['w1'], now: farAhead },
    ])
    expect(await get(`${url}/api/v1/queues/orders`)).toMatchObject({
      name: 'orders',
      partitions: 2,
      is_paused: false,
      created_at: '2026-01-02T03:04:05.678901Z',
      policy: {
        lease_timeout: '1m30s',
        expire_timeout: '24h0m0s',
        attempts_max: 3,
        dead_queue: 'orders.dead',
        on_dead: 'delete',
      },
      counts: { waiting: 2, leased: 1, accepted: 3, dead_lettered: 0 },
    })
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
      /^redrive_items\{queue="orders",state="waiting"\} 2$/m,
    )
  })

  it.each(['a b', 'a/b', '{x}', 'é', 'z%20'])(
    'a queue named %s is found by its encoded name',
    async (name) => {
      const { url } = await startServerWith([createQueue(name)])
      expect(await get(`${url}/api/v1/queues/${encodeURIComponent(name)}`)).toMatchObject({ name })
    },
  )

  it('an unknown queue name gets 404 with QUEUE_NOT_FOUND', async () => {
    const { url } = await startTestServer()
    const answer = await fetch(`${url}/api/v1/queues/nope`)
    expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'QUEUE_NOT_FOUND' } }])
  })
})
