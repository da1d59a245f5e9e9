/** Deaths, requeues, deletes and purges in random order, on two servers at once: every count stays exact. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../../src/server.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'
import { repeats, withRandom } from '../random-test.ts'
import type { SeededRandom } from '../seeded-random.ts'

const rounds = repeats(1)
const actions = 150
const settings = testSettings({
  'webhooks.retries_max': 1,
  'webhooks.retry_delays': ['10ms'],
  'webhooks.breaker_failures': 0,
  'webhooks.rational_delay': 200,
  'webhooks.timeout': 500,
})
const consumers = ['push1', 'push2', 'pull1', 'pull2'] as const

describe.each([
  ['SQLite file', 1],
  ['PostgreSQL', 2],
] as const)('counts of dead jobs (%s)', (name, serverCount) => {
  let store: TestStore
  let servers: RunningServer[] = []
  /** Beside the servers, where the store allows it. */
  let beside: Storage | undefined
  beforeEach(async () => {
    store = await createTestStore(name)
    const { log } = createReadableLog('info')
    for (let n = 0; n < serverCount; n++)
      servers.push(await startServer({ settings, store: store.target, log }))
    beside = name === 'PostgreSQL' ? await store.open() : undefined
  })
  afterEach(async () => {
    await Promise.all(servers.map((server) => server.stop(0)))
    servers = []
    await store.drop()
  })

  const pick = <T>(random: SeededRandom, of: readonly T[]): T => of[random.below(of.length)] as T
  const send = async (random: SeededRandom, method: string, path: string, given: RequestInit = {}) => {
    const response = await fetch(pick(random, servers).url + path, { method, ...given })
    const text = await response.text()
    if (response.status >= 500) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return isJson ? JSON.parse(text) : undefined
  }
  const tokens = { 'X-Broker-Channel-Token': 'c', 'X-Broker-Consumer-Token': 'k' }
  const pathOf = (consumer: string) => `/channel/c/consumer/${consumer}`

  const broadcast = (random: SeededRandom) =>
    send(random, 'POST', '/channel/c/broadcast', {
      headers: {
        'X-Broker-Channel-Token': 'c',
        'X-Broker-Producer-ID': 'p',
        'X-Broker-Producer-Token': 'p',
      },
      body: 'x',
    })
  const move = async (random: SeededRandom) => {
    const consumer = pick(random, ['pull1', 'pull2'])
    const { Result } = await send(random, 'GET', `${pathOf(consumer)}/queued-jobs`, { headers: tokens })
    if (Result.length === 0) return
    const path = `${pathOf(consumer)}/job/${pick(random, Result as { ID: string }[]).ID}`
    for (const NextState of ['INFLIGHT', pick(random, ['DEAD', 'DEAD', 'DELIVERED'])])
      await send(random, 'POST', path, { headers: tokens, body: JSON.stringify({ NextState }) })
  }
  const withDeadJob = async (random: SeededRandom, act: (path: string) => Promise<unknown>) => {
    const { DeadJobs } = await send(random, 'GET', `${pathOf(pick(random, consumers))}/dlq`)
    if (DeadJobs.length > 0) await act(pick(random, DeadJobs as { JobRequeueURL: string }[]).JobRequeueURL)
  }
  const requeueOne = (random: SeededRandom) =>
    withDeadJob(random, (path) => send(random, 'POST', path, { headers: tokens }))
  const deleteOne = (random: SeededRandom) =>
    withDeadJob(random, (path) =>
      send(random, 'DELETE', path.replace('/requeue-dead-job', ''), { headers: tokens }),
    )
  const takeDead = (random: SeededRandom) =>
    withDeadJob(random, (path) =>
      send(random, 'POST', path.replace('/requeue-dead-job', ''), {
        headers: tokens,
        body: '{"NextState":"INFLIGHT"}',
      }),
    )
  const requeueAll = (random: SeededRandom) =>
    send(random, 'POST', `${pathOf(pick(random, consumers))}/dlq`, {
      body: new URLSearchParams({ requeue: 'k' }),
    })
  const purge = (random: SeededRandom) =>
    send(random, 'DELETE', `${pathOf(pick(random, consumers))}/dlq`, { headers: tokens })
  const schedule = [
    ...[broadcast, broadcast, broadcast, broadcast, move, move, move],
    ...[requeueOne, requeueOne, takeDead, deleteOne, deleteOne, requeueAll, purge],
  ]

  const setUp = async (random: SeededRandom) => {
    const put = (path: string, form: Record<string, string>) =>
      send(random, 'PUT', path, { body: new URLSearchParams(form) })
    await put('/producer/p', { token: 'p' })
    await put('/channel/c', { token: 'c' })
    // Pushes to the documentation network are refused at once, so each attempt fails.
    for (const id of consumers)
      await put(pathOf(id), { token: 'k', callbackUrl: 'http://192.0.2.1/', type: id.slice(0, 4) })
  }

  /** The counts that each server shows, and the dead jobs that a list shows: equal once nothing moves. */
  const readAll = async (random: SeededRandom) => {
    const shown = await Promise.all(
      servers.map(async ({ url }) => {
        const { consumers: rows } = (await (await fetch(`${url}/dlq-status`)).json()) as {
          consumers: { consumerId: string; deadCount: number }[]
        }
        return new Map(rows.map(({ consumerId, deadCount }) => [consumerId, deadCount]))
      }),
    )
    const listed = new Map<string, number>()
    for (const id of consumers) {
      let path: string | undefined = `${pathOf(id)}/dlq`
      let count = 0
      while (path !== undefined) {
        const page: { DeadJobs: unknown[]; Pages: { next?: string } } = await send(random, 'GET', path)
        count += page.DeadJobs.length
        path = page.Pages.next
      }
      listed.set(id, count)
    }
    return consumers.map((id) => [listed.get(id), ...shown.map((counts) => counts.get(id) ?? 0)])
  }

  it.each(Array.from({ length: rounds }, (_, run) => run))(
    'every count is exact at any moment and on every server (run %i)',
    { ...needsOf(name), timeout: 120_000 },
    (run) =>
      withRandom(async (random) => {
        await setUp(random)
        let left = actions
        const act = async (): Promise<void> => {
          while (left-- > 0) {
            await pick(random, schedule)(random)
            // In one snapshot, so that work in progress cannot make a difference.
            if (left % 15 === 0 && beside !== undefined) expect(await beside.verify()).toEqual([])
          }
        }
        await Promise.all(Array.from({ length: 4 }, act))
        await expect
          .poll(async () => (await readAll(random)).every((counts) => new Set(counts).size === 1), {
            timeout: 20_000,
            interval: 200,
          })
          .toBe(true)
        await Promise.all(servers.splice(0).map((server) => server.stop(0)))
        const storage = beside ?? (await store.open())
        expect(await storage.verify()).toEqual([])
        await storage.close()
      }, run),
  )
})
