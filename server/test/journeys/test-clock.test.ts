import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { startTestServer } from '../http/test-server.ts'
import { createEnvelope } from '../letters-api/servers.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look at the fields they expect
type Body = any

const hourMs = 3_600_000

for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
  describe(`the test clock (${store})`, needsOf(store), () => {
    let testStore: TestStore
    beforeEach(async () => {
      testStore = await createTestStore(store)
    })
    afterEach(() => testStore?.drop())

    /**
     * Starts a server whose background passes do not run during the test, so that only the hook runs them.
     */
    const startServer = async () => {
      const { url } = await startTestServer(
        {
          'test.hooks': true,
          'letters.redrive_interval': hourMs,
          'letters.campaign_interval': hourMs,
          'letters.retention_interval': hourMs,
        },
        testStore.target,
      )
      const ask = async (method: string, path: string, body?: unknown): Promise<Body> => {
        const response = await fetch(`${url}${path}`, {
          method,
          ...(body !== undefined && {
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          }),
        })
        const answer = (await response.json()) as Body
        if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
        return answer
      }
      const get = (path: string) => ask('GET', path)
      const post = (path: string, body: unknown) => ask('POST', path, body)
      await post('/_test/clock', { now: '2030-01-01T00:00:00Z' })
      const queues = async (dead: object = {}) => {
        await post('/api/v1/queues', { name: 'dead', policy: dead })
        await post('/api/v1/queues', { name: 'work', policy: { dead_queue: 'dead' } })
      }
      const capture = (count: number) =>
        post('/api/v1/letters', {
          queue: 'dead',
          letters: Array.from({ length: count }, () => createEnvelope('work')),
        })
      const waiting = async () => (await get('/api/v1/queues/work')).counts.waiting
      return { get, post, queues, capture, waiting }
    }

    it('the test clock redrives letters automatically when their delay has ended, and not earlier', async () => {
      const { post, queues, capture, waiting } = await startServer()
      const backoff = { kind: 'fixed', delays: ['2s'] }
      await queues({ redrive: { mode: 'auto', backoff } })
      await capture(3)
      await post('/_test/clock', { advance: '1.9s' })
      expect(await waiting()).toBe(0)
      await post('/_test/clock', { advance: '0.1s' })
      expect(await waiting()).toBe(3)
    })

    it('the test clock runs a campaign to its end, regardless of the number of passes', async () => {
      const { get, post, queues, capture, waiting } = await startServer()
      await queues()
      for (let step = 0; step < 3; step++) await capture(1_000)
      const spec = { name: 'all', reason: 'fixed', action: 'redrive', filter: { queue: 'dead' } }
      const { id } = await post('/api/v1/campaigns', spec)
      await post('/_test/clock', { advance: '1s' })
      expect(await waiting()).toBe(3_000)
      expect(await get(`/api/v1/campaigns/${id}`)).toMatchObject({
        state: 'running',
        counts: { sent: 3_000 },
      })
      // No worker leases the items: they expire and become dead letters again, which ends the campaign.
      await post('/_test/clock', { advance: '25h' })
      expect(await get(`/api/v1/campaigns/${id}`)).toMatchObject({ state: 'done', counts: { failed: 3_000 } })
    })

    it('the test clock archives ended letters when their retention period has passed', async () => {
      const { get, post, queues, capture } = await startServer()
      await queues()
      const { letters } = await capture(2)
      const ids = letters.map(({ id }: Body) => id)
      await post('/api/v1/letters/discard', { ids, reason: 'not ours' })
      await post('/_test/clock', { advance: `${29 * 24}h` })
      expect((await get('/api/v1/archive')).letters).toEqual([])
      await post('/_test/clock', { advance: '25h' })
      expect((await get('/api/v1/archive')).letters).toHaveLength(2)
    })
  })
}
