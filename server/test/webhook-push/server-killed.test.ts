/** Whole server processes that are killed while they fan out and push. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { repeats, withRandom } from '../random-test.ts'
import { type Receiver, startReceiver } from './receivers.ts'

const launcher = fileURLToPath(new URL('../../bin/redrive.js', import.meta.url))
/** REDRIVE_TEST_SEEDS=50 kills 50 servers per store. */
const kills = repeats(3)
const consumers = ['k1', 'k2', 'k3']
const settings = {
  'webhooks-timeout': '1s',
  'webhooks-rational-delay': '200ms',
  'webhooks-retry-delays': '50ms',
  'webhooks-breaker-failures': '0',
  // A busy machine can be slower than the timeout, which must not kill jobs.
  'webhooks-retries-max': '100',
}

type Server = Readonly<{ url: string; child: ChildProcess }>

describe.each([
  ['SQLite file', 1],
  ['PostgreSQL', 2],
] as const)('servers that are killed (%s)', (name, serverCount) => {
  let store: TestStore
  let receiver: Receiver
  /** Deliveries by consumer and message. */
  const received = new Map<string, number>()
  const inProgress = new Set<string>()
  let overlaps: string[] = []
  const children: ChildProcess[] = []

  beforeEach(async () => {
    store = await createTestStore(name)
    received.clear()
    overlaps = []
    receiver = await startReceiver(({ headers }, response) => answer(headers, response))
  })
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await receiver.close()
    await store.drop()
  })

  const answer = async (headers: IncomingMessage['headers'], response: ServerResponse): Promise<void> => {
    const job = String(headers['webhook-id'])
    if (inProgress.has(job)) overlaps.push(job)
    inProgress.add(job)
    response.once('close', () => inProgress.delete(job))
    await sleep(5)
    const key = `${headers['x-broker-consumer-id']}/${headers['x-broker-message-id']}`
    received.set(key, (received.get(key) ?? 0) + 1)
    response.end('ok')
  }

  const start = async (): Promise<Server> => {
    const place =
      store.target.kind === 'postgres' ? store.target.url : (store.target as { path: string }).path
    const flags = Object.entries(settings).flatMap(([flag, value]) => [`--${flag}`, value])
    const args = ['serve', '--port', '0', '--store', place, '--sqlite-lock-wait', '5s', ...flags]
    const child = spawn(process.execPath, [launcher, ...args], {
      env: { PATH: process.env.PATH, REDRIVE_TEST_SOURCE: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    children.push(child)
    let text = ''
    const url = await new Promise<string>((resolve, reject) => {
      child.stderr?.on('data', (data: Buffer) => {
        text += data.toString()
        const found = /listening on (http:\S+),/.exec(text)?.[1]
        if (found !== undefined) resolve(found)
      })
      child.once('exit', () => reject(new Error(text)))
    })
    return { url, child }
  }

  const setUp = async (url: string): Promise<void> => {
    const put = async (path: string, form: Record<string, string>) => {
      const { status } = await fetch(url + path, { method: 'PUT', body: new URLSearchParams(form) })
      expect(status).toBe(200)
    }
    await put('/producer/p', { token: 'p' })
    await put('/channel/c', { token: 'c' })
    for (const id of consumers) await put(`/channel/c/consumer/${id}`, { callbackUrl: receiver.url })
  }

  /** Repeated until the message is accepted. A repeated call with 409 shows that the first was stored. */
  const broadcast = async (servers: readonly Server[], id: string, turn: number): Promise<void> => {
    for (let attempt = 0; ; attempt++) {
      const { url } = servers[(turn + attempt) % servers.length] as Server
      const headers = {
        'X-Broker-Channel-Token': 'c',
        'X-Broker-Producer-ID': 'p',
        'X-Broker-Producer-Token': 'p',
        'X-Broker-Message-ID': id,
      }
      const answered = await fetch(`${url}/channel/c/broadcast`, { method: 'POST', headers, body: id }).then(
        ({ status }) => status,
        () => 0,
      )
      if (answered === 201 || (answered === 409 && attempt > 0)) return
      if (attempt > 500) throw new Error(`message ${id}: ${answered}`)
      await sleep(20)
    }
  }

  it(
    `${kills} kills lose no message and no job, and no job is pushed twice at once`,
    { ...needsOf(name), timeout: 120_000 + kills * 10_000 },
    () =>
      withRandom(async (random) => {
        const servers: Server[] = []
        for (let n = 0; n < serverCount; n++) servers.push(await start())
        await setUp((servers[0] as Server).url)
        const ids: string[] = []
        let isOver = false
        const sending = Array.from({ length: 4 }, async (_, caller) => {
          for (let n = 0; !isOver; n++) {
            const id = `m-${caller}-${n}`
            await broadcast(servers, id, n)
            ids.push(id)
            await sleep(10)
          }
        })
        for (let kill = 0; kill < kills; kill++) {
          await sleep(100 + random.below(400))
          const at = random.below(servers.length)
          const { child } = servers[at] as Server
          const ended = once(child, 'exit')
          child.kill('SIGKILL')
          await ended
          servers[at] = await start()
        }
        isOver = true
        await Promise.all(sending)
        const readStates = async () => {
          const response = await fetch(`${(servers[0] as Server).url}/job-status`)
          const { c } = (await response.json()) as {
            c: Record<string, { status: number; count: number }[]>
          }
          return consumers.map((id) => c[id]?.map(({ status, count }) => ({ status, count })))
        }
        await expect
          .poll(readStates, { timeout: 60_000, interval: 100 })
          .toEqual(consumers.map(() => [{ status: 1003, count: ids.length }]))
        const missing = consumers.flatMap((consumer) =>
          ids.filter((id) => !received.has(`${consumer}/${id}`)),
        )
        expect({ missing, overlaps }).toEqual({ missing: [], overlaps: [] })
        expect(ids.length).toBeGreaterThan(kills)
        for (const { child } of servers) {
          const ended = once(child, 'exit')
          child.kill('SIGTERM')
          await ended
        }
        const storage = await store.open()
        expect(await storage.verify()).toEqual([])
        await storage.close()
      }),
  )
})
