import { afterAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { bearer, describeKeysServer } from '../access/keys-server.ts'
import { executeSql } from '../conformance/support/execute-sql.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer, sendRequest } from '../http/store-server.ts'
import { startTestServer } from '../http/test-server.ts'
import { kafkaSettings, openTestKafka } from '../kafka/test-kafka.ts'

const postgres = await requireService('privatePostgres')
const redis = await requireService('privateRedis')
const kafka = await requireService('privateKafka')

afterAll(async () => {
  for (const service of [postgres, redis, kafka]) if (service.missing === undefined) await service.end()
})

const quick = { 'workers.check_interval': 50, 'workers.missing_timeout': 500 } as const

async function readHealth(url: string, headers: Record<string, string> = {}) {
  const { status, body } = await sendRequest(`${url}/actuator/health`, 'GET', undefined, headers)
  return { httpStatus: status, ...body }
}

async function readProbes(url: string) {
  const [live, ready] = await Promise.all(
    ['liveness', 'readiness'].map((name) => sendRequest(`${url}/actuator/health/${name}`, 'GET')),
  )
  return { live: [live?.status, live?.body.status], ready: [ready?.status, ready?.body.status] }
}

type Found = Awaited<ReturnType<typeof readHealth>>
const untilHealth = (url: string, isExpected: (found: Found) => boolean) =>
  pollUntil(() => readHealth(url), isExpected)

const up = { live: [200, 'UP'], ready: [200, 'UP'] }
const unready = { live: [200, 'UP'], ready: [503, 'DOWN'] }

for (const store of ['SQLite memory', 'PostgreSQL'] as const)
  describeServer(`the actuator health (${store})`, store, quick, (server) => {
    const capture = async (sourceId: string): Promise<string> => {
      const letter = { original_topic: 'orders', source_id: sourceId, original_value: 'x' }
      const { letters } = await server.call('POST', '/api/v1/letters', { queue: 'dead', letters: [letter] })
      return letters[0].id
    }

    it('a dead letter makes the server DEGRADED until it is discarded, and no probe notices it', async () => {
      await server.call('POST', '/api/v1/queues', { name: 'dead' })
      const before = await untilHealth(server.url, ({ components }) => components.dead_letters !== undefined)
      expect(before).toMatchObject({ httpStatus: 200, status: 'UP' })
      const id = await capture('one')
      const found = await untilHealth(server.url, ({ status }) => status !== 'UP')
      expect(found).toMatchObject({ httpStatus: 200, status: 'DEGRADED' })
      expect(found.components).toMatchObject({
        storage: { status: 'UP' },
        dead_letters: { status: 'DEGRADED', details: { pending: 1, retrying: 0, dead: 0 } },
        workers: { status: 'UP' },
        counts: { status: 'UP', details: { wrong_counts: 0 } },
      })
      expect(await readProbes(server.url)).toEqual(up)
      await server.call('POST', '/api/v1/letters/discard', { ids: [id], reason: 'test' })
      await untilHealth(server.url, ({ status }) => status === 'UP')
    })

    it('a missing worker makes the server DEGRADED, and a worker that stopped does not', async () => {
      const beat = (status: string) =>
        server.call('POST', '/api/v1/workers/heartbeat', {
          heartbeats: [{ type: 'payout', instance_id: 'one', status }],
        })
      await beat('RUNNING')
      const found = await untilHealth(server.url, ({ components }) => components.workers.status !== 'UP')
      expect(found).toMatchObject({
        status: 'DEGRADED',
        components: { workers: { details: { missing: 1, worker_missing: 1 } } },
      })
      expect(await readProbes(server.url)).toEqual(up)
      await beat('STOPPED')
      const after = await untilHealth(server.url, ({ status }) => status === 'UP')
      expect(after.components.workers.details).toMatchObject({ missing: 0, stopped: 1 })
    })
  })

describe('the actuator health without PostgreSQL', needs(postgres), () => {
  it('the server is DOWN and not ready while PostgreSQL is stopped, stays alive, and recovers', async () => {
    const settings = { ...quick, 'store.retry_backoff_max': 200, 'postgres.connect_timeout': 2_000 }
    const { url } = await startTestServer(settings, { kind: 'postgres', url: postgres.url })
    await untilHealth(url, ({ status, components }) => status === 'UP' && components.clock.status === 'UP')
    await postgres.stop()
    const down = await untilHealth(url, ({ status }) => status === 'DOWN')
    expect(down).toMatchObject({ httpStatus: 503, components: { storage: { status: 'DOWN' } } })
    expect(down.components.storage.details.reason).toBeTypeOf('string')
    expect(JSON.stringify(down)).not.toContain(new URL(postgres.url).password)
    expect(await readProbes(url)).toEqual(unready)
    await postgres.start()
    await untilHealth(url, ({ status }) => status === 'UP')
    expect(await readProbes(url)).toEqual(up)
  })
})

describe('the actuator health without Redis', needs(redis), () => {
  it('a stopped Redis makes the server DEGRADED, and the server stays ready', async () => {
    const { url } = await startTestServer({ ...quick, 'redis.url': redis.url })
    const before = await untilHealth(url, ({ components }) => components.workers !== undefined)
    expect(before).toMatchObject({ status: 'UP', components: { redis: { status: 'UP' } } })
    await redis.stop()
    const found = await untilHealth(url, ({ status }) => status !== 'UP')
    expect(found).toMatchObject({ httpStatus: 200, status: 'DEGRADED' })
    expect(found.components).toMatchObject({ redis: { status: 'DOWN' }, workers: { status: 'UP' } })
    expect(JSON.stringify(found)).not.toContain(new URL(redis.url).password)
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^redrive_redis_up 0$/m)
    expect(await readProbes(url)).toEqual(up)
    await redis.start()
    await untilHealth(url, ({ status }) => status === 'UP')
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^redrive_redis_up 1$/m)
  })
})

describe('the actuator health with Kafka', needs(kafka), () => {
  it('a lag above its limit and a stopped cluster make the server DEGRADED, and it stays ready', async () => {
    const test = openTestKafka(kafka.brokers)
    await test.createTopic('escrow.commands')
    await test.send(Array.from({ length: 8 }, (_, at) => ({ topic: 'escrow.commands', value: `${at}` })))
    await test.commit('payouts', 'escrow.commands', [2])
    await test.close()
    const { url } = await startTestServer({
      ...kafkaSettings(kafka.brokers),
      ...quick,
      'kafka.lag_thresholds': ['escrow.commands=3/5'],
      'kafka.retry_backoff_max': 500,
    })
    const found = await untilHealth(url, ({ components }) => components.lag?.status === 'DEGRADED')
    const [cluster] = Object.keys(found.components.kafka.components)
    expect(found).toMatchObject({
      status: 'DEGRADED',
      components: {
        kafka: { status: 'UP' },
        lag: { details: { groups_above_limit: 1 } },
      },
    })
    expect(found.components.lag.components[`${cluster}/payouts`]).toEqual({
      status: 'DEGRADED',
      details: { lag: 6, topic: 'escrow.commands', limit: 5, severity: 'CRITICAL' },
    })
    await kafka.stop()
    const down = await untilHealth(url, ({ components }) => components.kafka.status !== 'UP')
    expect(down).toMatchObject({ httpStatus: 200, status: 'DEGRADED' })
    expect(down.components.kafka.components[cluster ?? '']).toMatchObject({ status: 'DOWN' })
    expect(await readProbes(url)).toEqual(up)
    await kafka.start()
    await untilHealth(url, ({ components }) => components.kafka.status === 'UP')
  }, 120_000)
})

describe('the actuator health of two servers', needsOf('PostgreSQL'), () => {
  it('a wrong count degrades every server, also those that did not compare the counts', async () => {
    const store = await createTestStore('PostgreSQL')
    try {
      const settings = { ...quick, 'counts.reconcile_interval': 300 }
      const servers = [
        await startTestServer(settings, store.target),
        await startTestServer(settings, store.target),
      ]
      const [first = servers[0]] = servers
      if (first === undefined) throw new Error('there is no server')
      await sendRequest(`${first.url}/api/v1/queues`, 'POST', { name: 'orders' })
      await sendRequest(`${first.url}/api/v1/queues/orders/items`, 'POST', {
        items: [{ payload: { text: 'x' } }],
      })
      for (const { url } of servers)
        await untilHealth(url, ({ components }) => components.workers !== undefined)
      const drifts = servers.map(({ url }) =>
        untilHealth(url, ({ components }) => components.counts.status === 'DEGRADED'),
      )
      await executeSql(store.target, (schema) => `update ${schema}counts set waiting = waiting + 5`)
      for (const found of await Promise.all(drifts)) {
        expect(found.status).toBe('DEGRADED')
        expect(found.components.counts.details.wrong_counts).toBeGreaterThan(0)
      }
      for (const { url } of servers) await untilHealth(url, ({ status }) => status === 'UP')
    } finally {
      await store.drop()
    }
  })
})

for (const store of ['SQLite memory', 'PostgreSQL'] as const)
  describeKeysServer(`the actuator health with keys (${store})`, store, quick, (server) => {
    it('only a caller with system.health in _system sees the components, and all others see the state', async () => {
      const seen = async (headers: Record<string, string> = {}) => {
        const found = await readHealth(server.url, headers)
        return { httpStatus: found.httpStatus, hasStatus: found.status, fields: Object.keys(found) }
      }
      const state = { httpStatus: 200, hasStatus: 'UP', fields: ['httpStatus', 'status'] }
      await server.admin('/v1/namespaces.create', { name: 'shop' })
      const tenant = await server.createKey({ roles: ['shop:Admin'] })
      const none = await server.createKey()
      const viewer = await server.createKey({ roles: ['PublicViewer'] })
      expect(await seen()).toEqual(state)
      expect(await seen(bearer(tenant.key))).toEqual(state)
      expect(await seen(bearer(none.key))).toEqual(state)
      expect(await seen(bearer(`qtr-live-${'0'.repeat(43)}`))).toEqual(state)
      expect(await seen({ authorization: 'Basic eDp5' })).toEqual(state)
      expect((await seen(bearer(viewer.key))).fields).toContain('components')
      expect((await seen({ 'x-api-key': server.adminKey })).fields).toContain('components')
      expect(await readProbes(server.url)).toEqual(up)
    })
  })
