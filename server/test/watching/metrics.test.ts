/** /metrics of running servers: the table in docs/metrics.md is complete, and shared numbers are equal. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseKafkaClusters } from '../../src/config/kafka-clusters.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type MetricFamily, readMetrics } from '../http/read-metrics.ts'
import { sendRequest } from '../http/store-server.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'

type Row = Readonly<{ name: string; type: string; labels: readonly string[]; source: string }>

/** The rows of the tables: name, type, labels, source, meaning. */
async function readTable(): Promise<ReadonlyMap<string, Row>> {
  const page = await readFile(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| (\w+) \| .+ \|$/gm)]
  return new Map(
    rows.map(([, name = '', type = '', labels = '', source = '']) => [
      name,
      { name, type, source, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label) },
    ]),
  )
}

/** Labels that belong to the type of the metric. */
const ofType = new Set(['le', 'quantile'])

describe('the metrics of two servers on one PostgreSQL', needsOf('PostgreSQL'), () => {
  let store: TestStore
  const servers: RunningServer[] = []
  const first = () => servers[0]?.url ?? ''
  const call = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const answer = await sendRequest(first() + path, 'POST', body, headers)
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  beforeAll(async () => {
    store = await createTestStore('PostgreSQL')
    const { log } = createReadableLog()
    const unreachable = '127.0.0.1:1'
    // Everything that adds metrics is configured.
    const settings = testSettings({
      'workers.check_interval': 100,
      'kafka.clusters': parseKafkaClusters(JSON.stringify({ main: { brokers: [unreachable] } })),
      'redis.url': `redis://${unreachable}`,
      'tracing.otlp_endpoint': `http://${unreachable}`,
    })
    for (const _ of ['first', 'second'])
      servers.push(await startServer({ settings, store: store.target, log }))
    await act()
  }, 60_000)
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop(0)))
    await store?.drop()
  })

  /** Letters in two dead queues, redrives with outcomes, a campaign, workers with retries. */
  const act = async () => {
    await call('/api/v1/queues', { name: 'dead', policy: { letter_class: 'financial' } })
    await call('/api/v1/queues', { name: 'other-dead' })
    await call('/api/v1/queues', { name: 'orders', policy: { dead_queue: 'dead', attempts_max: 1 } })
    const letter = (sourceId: string) => ({
      original_queue: 'orders',
      source_id: sourceId,
      original_value: 'x',
      error_details: { exception_class: 'TimeoutError', message: 'slow' },
    })
    const captured = await call('/api/v1/letters', { queue: 'dead', letters: ['a', 'b', 'c'].map(letter) })
    await call('/api/v1/letters', { queue: 'other-dead', letters: [letter('d')] })
    const [sent] = captured.letters
    await call('/api/v1/letters/redrive', { ids: [sent.id] })
    const lease = { queue_name: 'orders', client_id: 'w', batch_size: 1, request_timeout: '5s' }
    const { items } = await call('/v1/queue.lease', lease)
    await call('/v1/queue.complete', { queue_name: 'orders', ids: [items[0].id], request_timeout: '5s' })
    const filter = { queue: 'other-dead' }
    await call('/api/v1/campaigns', { action: 'redrive', filter, name: 'n', reason: 'r', canary_count: 1 })
    await call('/api/v1/workers/heartbeat', {
      heartbeats: [
        { type: 'payout', instance_id: 'one', consumer_lag: 3, retry_counts: { TimeoutError: 2 } },
        { type: 'payout', instance_id: 'two', status: 'SHUTTING_DOWN' },
      ],
    })
  }

  const readAll = () => Promise.all(servers.map(({ url }) => readMetrics(url)))

  it('docs/metrics.md lists exactly the metrics of a running server, with their type and labels', async () => {
    const table = await readTable()
    const found = await pollUntil(
      () => readMetrics(first()),
      (families) => (families.get('worker_heartbeat_timestamp')?.samples.length ?? 0) > 0,
    )
    expect([...found.keys()].toSorted()).toEqual([...table.keys()].toSorted())
    for (const { name, type, samples, help } of found.values()) {
      const row = table.get(name)
      expect(`${name} ${row?.type}`).toBe(`${name} ${type}`)
      expect(help, name).not.toBe('')
      for (const { labels } of samples) {
        const used = Object.keys(labels).filter((label) => !ofType.has(label))
        expect(row?.labels, name).toEqual(expect.arrayContaining(used))
      }
    }
  })

  it('metrics whose source is the store are equal on both servers', async () => {
    const table = await readTable()
    const shared = [...table.values()].filter(({ source }) => source === 'store').map(({ name }) => name)
    expect(shared.length).toBe(15)
    const values = (families: ReadonlyMap<string, MetricFamily>) =>
      shared.map((name) => [name, families.get(name)?.samples])
    // The heartbeat of a worker is read at each check, so the servers agree after the next one.
    const [a, b] = await pollUntil(readAll, ([one, two]) => {
      const texts = [one, two].map((families) => JSON.stringify(families && values(families)))
      return texts[0] === texts[1] && (one?.get('worker_dlq_replayed_total')?.samples[0]?.value ?? 0) > 0
    })
    expect(a && values(a)).toEqual(b && values(b))
  })

  it('the metrics of the seeds have their names and labels', async () => {
    const [, second] = await pollUntil(
      readAll,
      ([, families]) => (families?.get('redrive_redrive_outcomes_total')?.samples.length ?? 0) > 0,
    )
    const samples = (name: string) =>
      second?.get(name)?.samples.map(({ labels, value }) => ({ ...labels, value }))
    expect(samples('worker_dlq_messages_total')).toEqual(
      expect.arrayContaining([
        { topic: 'dead', value: 3 },
        { topic: 'other-dead', value: 1 },
      ]),
    )
    expect(samples('worker_dlq_replayed_total')?.[0]?.value).toBeGreaterThanOrEqual(1)
    expect(samples('redrive_redrive_outcomes_total')).toEqual(
      expect.arrayContaining([{ outcome: 'resolved', value: 1 }]),
    )
    expect(samples('worker_retry_count_total')).toEqual([
      { worker: 'payout', error: 'TimeoutError', value: 2 },
    ])
    const [heartbeat, ...others] = samples('worker_heartbeat_timestamp') ?? []
    expect(others).toEqual([])
    expect(heartbeat).toMatchObject({ worker: 'payout', worker_instance: 'one', namespace: '_system' })
    expect(Math.abs((heartbeat?.value ?? 0) - Date.now() / 1_000)).toBeLessThan(600)
    expect(samples('redrive_workers')).toEqual(
      expect.arrayContaining([{ worker: 'payout', state: 'DRAINING', value: 1 }]),
    )
    const oldest = samples('redrive_oldest_letter_timestamp_seconds')
    expect(oldest).toContainEqual(expect.objectContaining({ queue: 'dead' }))
    expect(samples('queued_job_count')).toEqual([{ value: 0 }])
    for (const name of ['dead_job_count', 'kafka_consumer_lag']) expect(second?.get(name)?.type).toBe('gauge')
  })
})
