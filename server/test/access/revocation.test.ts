/** Revocation is effective on every server when it is answered, also for requests that wait or stream. */
import { describe, expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { startStallingProxy } from '../http/stalling-proxy.ts'
import { sendRequest } from '../http/store-server.ts'
import { bearer, describeKeysServer, type KeysServer } from './keys-server.ts'

const settings = {
  'auth.failed_attempts_max': 100_000,
  'store.retry_backoff_max': 200,
  'postgres.connect_timeout': 2_000,
} as const

const startLease = (url: string, key: string, client_id: string) =>
  sendRequest(
    `${url}/v1/queue.lease`,
    'POST',
    { queue_name: 'work', client_id, batch_size: 1, request_timeout: '1m' },
    bearer(key),
  )

async function createQueue(server: KeysServer): Promise<void> {
  const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
  await server.admin('/v1/queues.create', { queue_name: 'work', requested_partitions: 1, ...timeouts })
}

async function waitForLease(url: string, server: KeysServer, count: number): Promise<void> {
  const path = `${url}/v1/queue.stats`
  await pollUntil(
    () => sendRequest(path, 'POST', { queue_name: 'work' }, bearer(server.adminKey)),
    ({ body }) => (body.logicalQueues[0].lease_waiting ?? 0) === count,
  )
}

describe.each(['SQLite memory', 'PostgreSQL'] as const)('%s', (store) => {
  describeKeysServer('a request that waits', store, settings, (server) => {
    it('a lease that waits ends when its key is revoked, and gets no item', async () => {
      await createQueue(server)
      const url = store === 'PostgreSQL' ? await server.startAnother() : server.url
      const { key, id } = await server.createKey({ roles: ['Admin'] })
      const lease = startLease(url, key, 'revoked')
      await waitForLease(url, server, 1)
      await server.admin('/v1/apikeys.delete', { id })
      const produced = { queue_name: 'work', request_timeout: '10s', items: [{ utf8: 'x' }] }
      if (store === 'PostgreSQL') await server.admin('/v1/queue.produce', produced)
      const answer = await lease
      expect([answer.status, answer.body.message]).toEqual([401, 'api key does not exist'])
      if (store !== 'PostgreSQL') await server.admin('/v1/queue.produce', produced)
      const mine = await startLease(url, server.adminKey, 'other')
      expect([mine.status, mine.body.items?.[0]?.attempts]).toEqual([200, 1])
    })

    it('a lease that waits ends when its role is taken away', async () => {
      const { key, userId } = await server.createKey({ roles: ['NamespaceOwner'] })
      const lease = startLease(server.url, key, 'without-role')
      await waitForLease(server.url, server, 1)
      const binding = { namespace: '_system', role_name: 'NamespaceOwner', user_id: userId }
      await server.admin('/v1/rolebindings.delete', binding)
      expect((await lease).status).toBe(403)
    })

    it('a lease that waits goes on when another key is revoked', async () => {
      const [kept, revoked] = [
        await server.createKey({ roles: ['Admin'] }),
        await server.createKey({ roles: ['Admin'] }),
      ]
      const lease = startLease(server.url, kept.key, 'kept')
      await waitForLease(server.url, server, 1)
      await server.admin('/v1/apikeys.delete', { id: revoked.id })
      await server.admin('/v1/queue.produce', {
        queue_name: 'work',
        request_timeout: '10s',
        items: [{ utf8: 'x' }],
      })
      expect((await lease).status).toBe(200)
    })

    it('the events of a campaign end when the key is revoked', async () => {
      await server.request('POST', '/api/v1/queues', { name: 'dead' }, bearer(server.adminKey))
      const letters = [{ original_topic: 't', original_value: 'x', error_details: { message: 'm' } }]
      await server.request('POST', '/api/v1/letters', { queue: 'dead', letters }, bearer(server.adminKey))
      const spec = { name: 'n', reason: 'r', action: 'discard', filter: { queue: 'dead' } }
      const campaign = await server.request(
        'POST',
        '/api/v1/campaigns',
        { ...spec, rate_per_second: 0.001, canary_count: 0 },
        bearer(server.adminKey),
      )
      expect(campaign.status, JSON.stringify(campaign.body)).toBe(200)
      await server.request('POST', `/api/v1/campaigns/${campaign.body.id}/pause`, {}, bearer(server.adminKey))
      const { key, id } = await server.createKey({ roles: ['Viewer'] })
      const events = await fetch(`${server.url}/api/v1/campaigns/${campaign.body.id}/events`, {
        headers: bearer(key),
      })
      expect(events.status).toBe(200)
      await server.admin('/v1/apikeys.delete', { id })
      // The stream would never end otherwise: the campaign waits.
      expect(await events.text()).toContain('event: campaign')
    })
  })
})

describeKeysServer('a server that cannot reach the store', 'PostgreSQL', settings, (server) => {
  it('accepts no revoked key, while the revocation is answered without waiting for it', {
    timeout: 60_000,
  }, async () => {
    const proxy = await startStallingProxy(server.storeUrl)
    const cutOff = await server.startAnother(proxy.url)
    const { key, id } = await server.createKey({ roles: ['Viewer'] })
    const list = () => sendRequest(`${cutOff}/api/v1/queues`, 'GET', undefined, bearer(key))
    expect((await list()).status).toBe(200)
    proxy.stall('open and new')
    // A request whose read of the credential hangs, and that gets its answer after the revocation.
    const waiting = list()
    await server.admin('/v1/apikeys.delete', { id })
    const refused = await list()
    expect([refused.status, refused.body.error.code]).toEqual([503, 'STORE_UNAVAILABLE'])
    proxy.resume()
    // It arrived before the revocation.
    expect([200, 503]).toContain((await waiting).status)
    const after = await pollUntil(list, ({ status }) => status !== 503, 30_000)
    expect(after.status).toBe(403)
  })
})
