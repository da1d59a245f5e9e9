/** Queues that are created with /api/v1 or the client bound their retries; the Queue API does not. */
import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

const bounded = {
  attemptsMax: 10,
  retry: { kind: 'exponential', delays: ['1s', '5m0s'], jitter: 0.2 },
}

async function startServer() {
  const { url } = await startTestServer({ 'test.hooks': true })
  const post = async (path: string, body: unknown) => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(response.status).toBe(200)
    return (await response.json()) as Record<string, unknown>
  }
  // From here on, time passes only when the test advances it. The worker of the client uses the real clock.
  await post('/_test/clock', { now: new Date().toISOString() })
  const advance = (duration: string) => post('/_test/clock', { advance: duration })
  return { client: createClient({ url }), post, advance }
}

describe('the default retry policy', () => {
  it('a queue of our API has 10 attempts with growing delays, and a queue of the Queue API is unlimited', async () => {
    const { client, post } = await startServer()
    const { policy } = await client.createQueue({ name: 'ours' })
    expect(policy).toMatchObject(bounded)
    expect((await client.createQueue({ name: 'mine', policy: { attemptsMax: 0 } })).policy).toMatchObject({
      ...bounded,
      attemptsMax: 0,
    })
    await post('/v1/queues.create', {
      queue_name: 'theirs',
      lease_timeout: '1m',
      expire_timeout: '10m',
      requested_partitions: 1,
    })
    expect((await client.getQueue('theirs')).policy).toMatchObject({
      attemptsMax: 0,
      retry: { kind: 'fixed', delays: ['0s'], jitter: 0 },
    })
  })

  it('the answer to a creation says what happens to items that fail without a dead queue', async () => {
    const { client } = await startServer()
    const { warnings } = await client.createQueue({ name: 'orders-dead' })
    expect(warnings).toEqual([
      'queue orders-dead has no dead queue: items that fail more than 10 times or wait longer than 24h0m0s ' +
        'are deleted, counted as dropped and logged. Set dead_queue to keep them as dead letters, or on_dead ' +
        'to keep them. Dead letters that it holds itself are not affected',
    ])
    const kept = await client.createQueue({ name: 'kept', policy: { onDead: 'keep', attemptsMax: 0 } })
    expect(kept.warnings).toEqual([
      'queue kept has no dead queue: items that wait longer than 24h0m0s stay in it as dead and cannot be ' +
        'redriven: only a request deletes them. Set dead_queue to keep them as dead letters. Dead letters ' +
        'that it holds itself are not affected',
    ])
    const { warnings: none } = await client.createQueue({
      name: 'orders',
      policy: { deadQueue: 'orders-dead' },
    })
    expect(none).toEqual([])
  })

  it('an item whose handler fails is not handled again before its delay has passed', async () => {
    const { client, advance } = await startServer()
    await client.createQueue({ name: 'dead' })
    await client.createQueue({ name: 'jobs', policy: { deadQueue: 'dead' } })
    await client.produce('jobs', 'fails')
    let calls = 0
    const worker = client.work('jobs', async () => {
      calls++
      throw new Error('always')
    })
    const counts = async () => (await client.getQueue('jobs')).counts
    for (let attempt = 1; attempt <= 11; attempt++) {
      await pollUntil(counts, ({ scheduled, deadLettered }) => scheduled + deadLettered === 1)
      expect(calls).toBe(attempt)
      await advance('6m')
    }
    expect(await counts()).toMatchObject({ deadLettered: 1, scheduled: 0 })
    await worker.stop()
  })

  it('an item whose worker disappears waits for its delay after the end of its lease', async () => {
    const { client, advance } = await startServer()
    await client.createQueue({ name: 'jobs', policy: { leaseTimeout: '10s' } })
    await client.produce('jobs', 'crashes the worker')
    expect((await client.lease('jobs', { clientId: 'crashing', countMax: 1 })).items).toHaveLength(1)
    await advance('10.5s')
    const counts = async () => (await client.getQueue('jobs')).counts
    expect(await counts()).toMatchObject({ leased: 0, scheduled: 1, waiting: 0 })
    await advance('2s')
    expect(await counts()).toMatchObject({ scheduled: 0, waiting: 1 })
  })
})
