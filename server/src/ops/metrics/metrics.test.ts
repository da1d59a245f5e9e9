import { describe, expect, it } from 'vitest'
import type { CampaignCounts } from '../../storage/contract/campaigns.ts'
import type { QueueCounts } from '../../storage/contract/counts.ts'
import { createLetterTotals } from './letter-totals.ts'
import { createMetrics, type MetricsSources } from './metrics.ts'
import { createPushMetrics } from './push-metrics.ts'
import { createStoreTimes } from './store-times.ts'

const counts = (over: Partial<QueueCounts>): QueueCounts => ({
  queue: 'orders',
  waiting: 0,
  scheduled: 0,
  leased: 0,
  done: 0,
  dead: 0,
  discarded: 0,
  accepted: 0,
  completed: 0,
  deadLettered: 0,
  dropped: 0,
  deleted: 0,
  forgotten: 0,
  archived: 0,
  purged: 0,
  ...over,
})

const campaignCounts = (over: Partial<CampaignCounts>): CampaignCounts => ({
  pending: 0,
  sent: 0,
  resolved: 0,
  failed: 0,
  unknown: 0,
  skipped: 0,
  discarded: 0,
  ...over,
})

const sources = (over: Partial<MetricsSources> = {}): MetricsSources => ({
  version: '1.2.3',
  storeKind: 'sqlite',
  isStoreUp: () => true,
  readCounts: async () => [],
  readLetters: async () => ({ letters: [], classes: new Map(), campaigns: [], arrivals: [], oldest: [] }),
  letterTotals: createLetterTotals(),
  storeTimes: createStoreTimes(),
  pushes: createPushMetrics(),
  readDispatch: () => undefined,
  countConnections: () => 3,
  readClockOffsetSeconds: () => null,
  getReconcileState: () => ({ at: null, differences: 0, differencesTotal: 0 }),
  ...over,
})

describe('metrics', () => {
  it('the metrics show whether counts differ from their rows, and when they were last compared', async () => {
    const getReconcileState = () => ({ at: 1_794_744_000_000_000, differences: 2, differencesTotal: 5 })
    const text = await createMetrics(sources({ getReconcileState })).render()
    expect(text).toMatch(/^redrive_counts_drift 2$/m)
    expect(text).toMatch(/^redrive_counts_drift_total 5$/m)
    expect(text).toMatch(/^redrive_counts_compared_timestamp_seconds 1794744000$/m)
  })

  it('the metrics show handler durations as a summary with the median and the 99th percentile', async () => {
    const metrics = createMetrics(sources())
    for (let ms = 1; ms <= 100; ms++) {
      metrics.observe({ method: 'GET', path: '/api/v1/queues/{name}', status: 200, ms })
    }
    const text = await metrics.render()
    expect(text).toContain('# TYPE http_handler_duration summary')
    expect(text).toMatch(/http_handler_duration\{quantile="0.5",path="\/api\/v1\/queues\/\{name\}"\} 0\.05/)
    expect(text).toMatch(/http_handler_duration\{quantile="0.99",path="\/api\/v1\/queues\/\{name\}"\} 0\.09/)
    expect(text).toContain('http_handler_duration_count{path="/api/v1/queues/{name}"} 100')
    expect(text).toContain(
      'redrive_http_requests_total{method="GET",path="/api/v1/queues/{name}",status="200"} 100',
    )
  })

  it('each scrape has the exact counts of a queue', async () => {
    let waiting = 5
    const metrics = createMetrics(
      sources({
        readCounts: async () => [counts({ waiting, accepted: 11, deadLettered: 4, archived: 3, purged: 2 })],
      }),
    )
    expect(await metrics.render()).toContain('redrive_items{queue="orders",state="waiting"} 5')
    waiting = 3
    const text = await metrics.render()
    expect(text).toContain('redrive_items{queue="orders",state="waiting"} 3')
    expect(text).toContain('redrive_items_total{queue="orders",event="dead_lettered"} 4')
    expect(text).toContain('redrive_items_total{queue="orders",event="accepted"} 11')
    // A restored letter leaves the archive, so the number of archived letters is a gauge.
    expect(text).toContain('redrive_items{queue="orders",state="archived"} 3')
    expect(text).toContain('redrive_items_total{queue="orders",event="purged"} 2')
    expect(text).not.toContain('event="archived"')
  })

  it('the metrics show letters by queue, class and status, campaigns by state, and the totals of operations', async () => {
    const letterTotals = createLetterTotals()
    const metrics = createMetrics(
      sources({
        letterTotals,
        readLetters: async () => ({
          letters: [
            { queue: 'dead', state: 'waiting', count: 3 },
            { queue: 'dead', state: 'scheduled', count: 1 },
            { queue: 'dead', state: 'dead', count: 2 },
          ],
          classes: new Map([['dead', 'financial']]),
          campaigns: ['first', 'second'].map((id) => ({
            id,
            state: 'running',
            counts: campaignCounts({ sent: 3 }),
          })),
          arrivals: [counts({ queue: 'dead', accepted: 6 }), counts({ queue: null, accepted: 1 })],
          oldest: [{ queue: 'dead', diedAt: 1_794_744_000_500_000 }],
        }),
      }),
    )
    letterTotals.captured.add('dead', 6)
    letterTotals.redriven.add('', 4)
    letterTotals.refused.add('no-target', 1)
    letterTotals.discarded.add('', 2)
    for (const _ of ['first scrape', 'second scrape']) {
      const text = await metrics.render()
      expect(text).toContain('redrive_letters{queue="dead",letter_class="financial",status="PENDING"} 4')
      expect(text).toContain('redrive_letters{queue="dead",letter_class="financial",status="DEAD"} 2')
      expect(text).toContain('redrive_campaigns{state="running"} 2')
      expect(text).toContain('redrive_campaigns{state="halted"} 0')
      expect(text).toContain('redrive_campaign_letters{campaign="second",state="sent"} 3')
      expect(text).toContain('worker_dlq_messages_total{topic="dead"} 6')
      expect(text).toContain('worker_dlq_messages_total{topic="(others)"} 1')
      expect(text).toContain('redrive_oldest_letter_timestamp_seconds{queue="dead"} 1794744000.5')
      expect(text).toContain('redrive_letters_captured_total{queue="dead"} 6')
      expect(text).toMatch(/^redrive_letters_redriven_total 4$/m)
      expect(text).toContain('redrive_letters_refused_total{refusal="no-target"} 1')
      expect(text).toMatch(/^redrive_letters_discarded_total 2$/m)
    }
  })

  it('the metrics show the duration of store writes as a histogram by kind of command', async () => {
    const storeTimes = createStoreTimes()
    storeTimes.writes.observe({ command: 'produce' }, 0.002)
    storeTimes.writes.observe({ command: 'produce' }, 20)
    const text = await createMetrics(sources({ storeTimes })).render()
    expect(text).toContain('# TYPE redrive_store_write_seconds histogram')
    expect(text).toContain('redrive_store_write_seconds_bucket{le="0.001",command="produce"} 0')
    expect(text).toContain('redrive_store_write_seconds_bucket{le="0.0025",command="produce"} 1')
    expect(text).toContain('redrive_store_write_seconds_bucket{le="+Inf",command="produce"} 2')
    expect(text).toContain('redrive_store_write_seconds_sum{command="produce"} 20.002')
    expect(text).toContain('redrive_store_write_seconds_count{command="produce"} 2')
  })

  it('the metrics have at most 500 queue labels, and count all further queues as (others)', async () => {
    const letterTotals = createLetterTotals()
    const letters = Array.from({ length: 2_000 }, (_, index) => {
      letterTotals.captured.add(`q${index}`, 1)
      return { queue: `q${index}`, state: 'waiting', count: index + 1 } as const
    })
    const readLetters = async () => ({ letters, classes: new Map(), campaigns: [], arrivals: [], oldest: [] })
    const text = await createMetrics(sources({ letterTotals, readLetters })).render()
    const labelled = (name: string) => text.split('\n').filter((line) => line.startsWith(`${name}{`))
    expect(labelled('redrive_letters')).toHaveLength(501)
    expect(text).toContain(
      'redrive_letters{queue="(others)",letter_class="(others)",status="PENDING"} 1125750',
    )
    expect(labelled('redrive_letters_captured_total')).toHaveLength(501)
    expect(text).toContain('redrive_letters_captured_total{queue="(others)"} 1500')
  })

  it('the counts of all queues without their own series are in one series', async () => {
    const queues = [counts({ waiting: 1 }), counts({ queue: null, waiting: 7 })]
    const text = await createMetrics(sources({ readCounts: async () => queues })).render()
    expect(text).toContain('redrive_items{queue="(others)",state="waiting"} 7')
  })

  it('scrapes at the same time read the store once', async () => {
    let reads = 0
    const readCounts = async () => {
      reads++
      return []
    }
    const metrics = createMetrics(sources({ readCounts }))
    await Promise.all([metrics.render(), metrics.render(), metrics.render()])
    expect(reads).toBe(1)
    await metrics.render()
    expect(reads).toBe(2)
  })

  it('the metrics contain no numbers of a deleted queue', async () => {
    let queues = [counts({ waiting: 1 })]
    const metrics = createMetrics(sources({ readCounts: async () => queues }))
    await metrics.render()
    queues = []
    expect(await metrics.render()).not.toContain('queue="orders"')
  })

  it('the metrics escape special characters in queue names', async () => {
    const metrics = createMetrics(sources({ readCounts: async () => [counts({ queue: 'a"b\\c\nd' })] }))
    expect(await metrics.render()).toContain('queue="a\\"b\\\\c\\nd"')
  })

  it('the metrics are rendered without counts when the store fails or does not answer', async () => {
    const failing = createMetrics(
      sources({ isStoreUp: () => false, readCounts: async () => Promise.reject(new Error('gone')) }),
    )
    const text = await failing.render()
    expect(text).toContain('redrive_store_up 0')
    expect(text).not.toContain('redrive_items{')
    const throwing = createMetrics(
      sources({
        readCounts: () => {
          throw new Error('not connected')
        },
      }),
    )
    expect(await throwing.render()).toContain('redrive_store_up 1')
    const hanging = createMetrics(sources({ readCounts: () => new Promise(() => {}), countsMsMax: 1 }))
    expect(await hanging.render()).toContain('redrive_info{version="1.2.3",store="sqlite"} 1')
  })
})
