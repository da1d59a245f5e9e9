import { describe, expect, it } from 'vitest'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import type { Body } from '../http/store-server.ts'
import { startTestServer } from '../http/test-server.ts'

describe('two servers on one database', needsOf('PostgreSQL'), () => {
  it('concurrent requeues at two servers send each letter once', async () => {
    const place = await createTestStore('PostgreSQL')
    const servers = [await startTestServer({}, place.target), await startTestServer({}, place.target)]
    try {
      const [first = '', second = ''] = servers.map(({ url }) => url)
      const call = async (url: string, body?: unknown): Promise<Body> => {
        const response = await fetch(url, {
          ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
          headers: { 'content-type': 'application/json' },
        })
        expect([url, response.status]).toEqual([url, 200])
        return response.json()
      }
      await call(`${first}/api/v1/queues`, { name: 'orders.dead' })
      await call(`${first}/api/v1/queues`, { name: 'orders', policy: { dead_queue: 'orders.dead' } })
      const captured = await call(`${first}/api/v1/letters`, {
        queue: 'orders.dead',
        letters: Array.from({ length: 300 }, (_, index) => ({
          source_id: String(index),
          original_queue: 'orders',
          original_value: { index },
          error_details: { message: 'network timeout' },
        })),
      })
      const ids: string[] = captured.letters.map(({ id }: { id: string }) => id)

      const answers = await Promise.all(
        [first, second, first, second].map((url) => call(`${url}/api/v1/dlq/requeue`, { ids })),
      )
      const requeued: string[] = answers.flatMap(({ data }) => data.requeued)
      expect(requeued.toSorted()).toEqual(ids.toSorted())
      const reasons = answers.flatMap(({ data }) =>
        data.skipped.map(({ reason }: { reason: string }) => reason),
      )
      expect(new Set(reasons)).toEqual(new Set(['already_queued']))

      for (const url of [first, second]) {
        expect((await call(`${url}/api/v1/dlq/stats`)).data.total).toBe(0)
        const queue = await call(`${url}/api/v1/queues/orders`)
        expect(queue.counts.waiting).toBe(300)
      }
    } finally {
      await Promise.all(servers.map((server) => server.stop(0)))
      await place.drop()
    }
  })
})
