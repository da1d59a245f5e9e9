import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Registry,
  Summary,
  type SummaryConfiguration,
} from 'prom-client'
import { usPerSecond } from '../core/instant.ts'
import type { Counts, PartitionCounts } from '../storage/contract/counts.ts'
import { type AnsweredRequest, AnsweredRequests } from './answered-requests.ts'
import { createLetterMetrics, type LetterFacts } from './letter-metrics.ts'
import type { LetterTotals } from './letter-totals.ts'
import type { Reconciled } from './reconciler.ts'
import type { StoreWriteTimes } from './store-write-times.ts'

export type MetricsSources = Readonly<{
  version: string
  storeKind: string
  isStoreUp: () => boolean
  /** Exact, read at scrape time. */
  readCounts: () => Promise<readonly PartitionCounts[]>
  /** The same. */
  readLetters: () => Promise<LetterFacts>
  /** What this server did with letters. */
  letterTotals: LetterTotals
  storeWrites: StoreWriteTimes
  connections: () => number
  /** What the last comparison of counts with rows found. */
  reconciled: () => Reconciled
  /** A scrape waits no longer than this for the store. */
  countsMsMax?: number
}>

export interface Metrics {
  readonly contentType: string
  observe(request: AnsweredRequest): void
  /** All metrics as Prometheus text. Without a store only what is counted there is missing. */
  render(): Promise<string>
}

const gauges = [
  'waiting',
  'scheduled',
  'leased',
  'done',
  'dead',
  'discarded',
  'archived',
] as const satisfies readonly (keyof Counts)[]
const totals = [
  'accepted',
  'completed',
  'deadLettered',
  'dropped',
  'deleted',
  'forgotten',
  'purged',
] as const satisfies readonly (keyof Counts)[]

const quantiles = [0.5, 0.99]

export function createMetrics(sources: MetricsSources): Metrics {
  // A registry of its own: two servers in one process, as in tests, must not share their numbers.
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const answered = new AnsweredRequests()
  new Durations(answered, {
    name: 'http_handler_duration',
    help: 'Seconds from the first byte of a request to the end of its answer, by route.',
    registers,
  })
  new Counter({
    name: 'redrive_http_requests_total',
    help: 'Answered requests, by method, route and status.',
    labelNames: ['method', 'path', 'status'],
    registers,
    collect() {
      this.reset()
      for (const { path, answers } of answered.read([])) {
        for (const { method, status, count } of answers) this.inc({ method, path, status }, count)
      }
    },
  })
  new Gauge({
    name: 'redrive_http_connections',
    help: 'Open client connections.',
    registers,
    collect() {
      this.set(sources.connections())
    },
  })
  new Gauge({
    name: 'redrive_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'store'],
    registers,
  }).set({ version: sources.version, store: sources.storeKind }, 1)
  new Gauge({
    name: 'redrive_store_up',
    help: '1 while the store answers, else 0.',
    registers,
    collect() {
      this.set(sources.isStoreUp() ? 1 : 0)
    },
  })
  registry.registerMetric(sources.storeWrites)
  new Gauge({
    name: 'redrive_counts_drift',
    help: 'Counts that did not match their rows when they were last compared. Should be 0, always.',
    registers,
    collect() {
      this.set(sources.reconciled().differences)
    },
  })
  new Counter({
    name: 'redrive_counts_drift_total',
    help: 'Counts that did not match their rows, over the life of this server.',
    registers,
    collect() {
      this.reset()
      this.inc(sources.reconciled().differencesTotal)
    },
  })
  new Gauge({
    name: 'redrive_counts_compared_timestamp_seconds',
    help: 'When this server last compared counts with rows; 0 while another server does it.',
    registers,
    collect() {
      this.set((sources.reconciled().at ?? 0) / usPerSecond)
    },
  })
  const items = new Gauge({
    name: 'redrive_items',
    help: 'Items in a queue now, by state, and in its archive. Exact.',
    labelNames: ['queue', 'state'],
    registers,
  })
  const ends = new Counter({
    name: 'redrive_items_total',
    help: 'Items that a queue ever accepted, and how they left it. Exact.',
    labelNames: ['queue', 'event'],
    registers,
  })

  const letterMetrics = createLetterMetrics(registry, sources.letterTotals)

  const readStore = async (): Promise<void> => {
    const msMax = sources.countsMsMax ?? 2_000
    const [partitions, letters] = await Promise.all([
      within(msMax, sources.readCounts),
      within(msMax, sources.readLetters),
    ])
    letterMetrics.set(letters)
    items.reset()
    ends.reset()
    for (const partition of partitions ?? []) {
      for (const state of gauges) items.inc({ queue: partition.queue, state }, partition[state])
      for (const event of totals) ends.inc({ queue: partition.queue, event: snake(event) }, partition[event])
    }
  }

  return {
    contentType: registry.contentType,
    observe: (request) => answered.observe(request),
    render: async () => {
      await readStore()
      return registry.metrics()
    },
  }
}

/** The library's summary with our figures in it. */
class Durations extends Summary<'path' | 'quantile'> {
  readonly #answered: AnsweredRequests

  constructor(answered: AnsweredRequests, configuration: SummaryConfiguration<'path' | 'quantile'>) {
    super(configuration)
    this.#answered = answered
  }

  override async get(): ReturnType<Summary<'path' | 'quantile'>['get']> {
    const summary = await super.get()
    const values = this.#answered.read(quantiles).flatMap(({ path, count, secondsSum, ...figures }) => [
      ...quantiles.map((quantile, index) => ({
        labels: { quantile, path },
        value: figures.quantiles[index] ?? 0,
      })),
      { metricName: `${summary.name}_sum`, labels: { path }, value: secondsSum },
      { metricName: `${summary.name}_count`, labels: { path }, value: count },
    ])
    return { ...summary, values }
  }
}

/** Undefined when the store fails or takes too long: the other metrics are wanted then most of all. */
async function within<T>(msMax: number, read: () => Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), msMax)
  })
  // Not an answer but not silent either: redrive_store_up and /health say why.
  const answer = new Promise<T>((resolve) => resolve(read())).catch(() => undefined)
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
