import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Registry,
  Summary,
  type SummaryConfiguration,
} from 'prom-client'
import { usPerSecond } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import type { AlertCount } from '../../storage/contract/alerts.ts'
import type { Counts, QueueCounts } from '../../storage/contract/counts.ts'
import type { ConsumerCounts } from '../../storage/contract/webhooks.ts'
import type { ReconcileState } from '../health/reconciler.ts'
import type { WatchReport } from '../watching/evaluate.ts'
import { type AccessTotals, registerAccessTotals } from './access-totals.ts'
import { registerAlerts } from './alert-metrics.ts'
import { type AnsweredRequest, AnsweredRequests } from './answered-requests.ts'
import { combineMetrics, type MetricReport } from './combined-metrics.ts'
import { type KafkaFigures, registerKafka } from './kafka-metrics.ts'
import { otherLabel } from './labelled-totals.ts'
import { createLetterMetrics, type LetterFigures, registerLetterTotals } from './letter-metrics.ts'
import type { LetterTotals } from './letter-totals.ts'
import type { NotificationMetrics } from './notification-metrics.ts'
import type { DispatchFigures, PushMetrics } from './push-metrics.ts'
import type { StoreTimes } from './store-times.ts'
import { renderFamily, type TextFamily } from './text-family.ts'
import type { TraceMetrics } from './trace-metrics.ts'
import { createWorkerMetrics } from './worker-metrics.ts'

export type MetricsSources = Readonly<{
  version: string
  storeKind: string
  isStoreUp: () => boolean
  /** Exact counts of at most `labelValuesMax` queues and of all others together, read at each scrape. */
  readCounts: () => Promise<readonly QueueCounts[]>
  /** Exact figures, read at each scrape. */
  readLetters: () => Promise<LetterFigures>
  /** The actions of this server on letters. */
  letterTotals: LetterTotals
  /** Calls that this server refused; default: not counted. */
  accessTotals?: AccessTotals
  storeTimes: StoreTimes
  /** The pushes of this server to webhook consumers. */
  pushes: PushMetrics
  /** The notifications of this server about alerts. Undefined: it sends none. */
  notifications?: NotificationMetrics
  /** The spans of this server. Undefined without tracing. */
  spans?: TraceMetrics
  /** The exact numbers of jobs of webhook consumers, read at each scrape. */
  readDeadJobs?: () => Promise<readonly ConsumerCounts[]>
  /** Tracked alerts, read at each scrape. */
  countAlerts?: () => Promise<readonly AlertCount[]>
  /** Undefined while the store was never open. */
  readDispatch: () => DispatchFigures | undefined
  countConnections: () => number
  /** How far the clock of this machine is ahead of the clock of the store; null if the store has none. */
  readClockOffsetSeconds: () => number | null
  /** The figures of Kafka clusters at the last reading. Undefined: there are none. */
  kafka?: KafkaFigures
  /** The last check of workers; null: there was none. */
  peekWatchReport?: () => WatchReport | null
  /** Undefined: no Redis is configured. */
  isRedisUp?: () => boolean
  /** The result of the last comparison of counts with rows. */
  getReconcileState: () => ReconcileState
  /** The longest wait of a scrape for the store. */
  countsMsMax?: number
  /** Collects the reports of all processes that serve this port, including this one. */
  collectReports?: () => Promise<readonly MetricReport[]>
}>

export interface Metrics {
  readonly contentType: string
  observe(request: AnsweredRequest): void
  /** Renders all metrics as Prometheus text. If the store does not answer, only its counts are missing. */
  render(): Promise<string>
  /** The metrics of this process, without those that are read from the store. */
  report(): Promise<MetricReport>
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
  // Each server has its own registry: two servers in one process, as in tests, must not share their numbers.
  const registry = new Registry()
  const answered = new AnsweredRequests()
  collectDefaultMetrics({ register: registry })
  registerHttpMetrics(registry, answered, sources.countConnections)
  registerServerMetrics(registry, sources)
  for (const times of Object.values(sources.storeTimes)) registry.registerMetric(times)
  if (sources.isRedisUp !== undefined) registerRedis(registry, sources.isRedisUp)
  registerDriftMetrics(registry, sources)
  // Metrics of the store are the same in every process, so they must not be added up.
  const storeRegistry = new Registry()
  let items = renderItems([])
  const letterMetrics = createLetterMetrics(storeRegistry)
  const deadJobs = createDeadJobMetric(storeRegistry)
  const workers = createWorkerMetrics(storeRegistry)
  // All processes read the same lag, so it must not be added up either.
  if (sources.kafka !== undefined) registerKafka(storeRegistry, sources.kafka)
  if (sources.countAlerts !== undefined) registerAlerts(storeRegistry, sources.countAlerts)
  registerLetterTotals(registry, sources.letterTotals)
  if (sources.accessTotals !== undefined) registerAccessTotals(registry, sources.accessTotals)
  sources.pushes.register(registry, sources.readDispatch)
  sources.notifications?.register(registry)
  sources.spans?.register(registry)

  let rendering: Promise<string> | undefined
  const readStore = async (): Promise<void> => {
    const msMax = sources.countsMsMax ?? 2_000
    const [queues, letters, consumers] = await Promise.all([
      readWithin(msMax, sources.readCounts),
      readWithin(msMax, sources.readLetters),
      readWithin(msMax, sources.readDeadJobs ?? (async () => [])),
    ])
    deadJobs.set(consumers ?? [])
    workers.set(sources.peekWatchReport?.() ?? null)
    letterMetrics.set(letters)
    items = renderItems(queues ?? [])
  }

  return {
    contentType: registry.contentType,
    observe: (request) => answered.observe(request),
    render: () => {
      // Scrapes at the same time get the same text.
      rendering ??= readStore()
        .then(() => Promise.all([renderProcesses(registry, sources.collectReports), storeRegistry.metrics()]))
        .then((texts) => [...texts, items].join('\n'))
        .finally(() => {
          rendering = undefined
        })
      return rendering
    },
    report: () => registry.getMetricsAsJSON(),
  }
}

/** The consumers that have their own entry: those with the most dead jobs. */
const deadJobConsumersMax = 10_000

function createDeadJobMetric(registry: Registry) {
  const gauge = new Gauge({
    name: 'dead_job_count',
    help: 'Exact number of dead jobs of a webhook consumer.',
    labelNames: ['channel', 'consumer'],
    registers: [registry],
  })
  return {
    set: (consumers: readonly ConsumerCounts[]) => {
      gauge.reset()
      const shown = consumers.filter(({ hadDead }) => hadDead)
      if (shown.length > deadJobConsumersMax) shown.sort((left, right) => right.dead - left.dead)
      for (const { consumer, dead } of shown.slice(0, deadJobConsumersMax)) {
        gauge.set({ channel: consumer.channelId, consumer: consumer.id }, dead)
      }
    },
  }
}

async function renderProcesses(
  registry: Registry,
  collectReports: MetricsSources['collectReports'],
): Promise<string> {
  if (collectReports === undefined) return registry.metrics()
  const reports = await collectReports().catch((error: unknown) => {
    // The metrics of this process alone would look like a restart of all processes.
    throw new KnownError('SERVER_OVERLOADED', 'the metrics of all processes could not be collected', error)
  })
  return combineMetrics(reports)
}

function registerHttpMetrics(
  registry: Registry,
  answered: AnsweredRequests,
  countConnections: () => number,
): void {
  const registers = [registry]
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
      this.set(countConnections())
    },
  })
}

function registerServerMetrics(registry: Registry, sources: MetricsSources): void {
  const registers = [registry]
  new Gauge({
    name: 'redrive_info',
    help: 'Always 1; the labels contain the version and the store.',
    labelNames: ['version', 'store'],
    registers,
    aggregator: 'first',
  }).set({ version: sources.version, store: sources.storeKind }, 1)
  new Gauge({
    name: 'redrive_store_up',
    help: '1 while the store answers, otherwise 0.',
    registers,
    aggregator: 'min',
    collect() {
      this.set(sources.isStoreUp() ? 1 : 0)
    },
  })
  new Gauge({
    name: 'redrive_clock_offset_seconds',
    help: 'How far the clock of this machine is ahead of the clock of the database. Absent for SQLite, which has no clock.',
    registers,
    // All processes run on one machine.
    aggregator: 'first',
    collect() {
      const seconds = sources.readClockOffsetSeconds()
      if (seconds === null) this.remove()
      else this.set(seconds)
    },
  })
}

function registerRedis(registry: Registry, isUp: () => boolean): void {
  new Gauge({
    name: 'redrive_redis_up',
    help: '1 while heartbeats can be read from Redis, otherwise 0. Absent without Redis.',
    registers: [registry],
    aggregator: 'min',
    collect() {
      this.set(isUp() ? 1 : 0)
    },
  })
}

function registerDriftMetrics(
  registry: Registry,
  { getReconcileState, peekWatchReport }: MetricsSources,
): void {
  const reconciled = getReconcileState
  const registers = [registry]
  new Gauge({
    name: 'redrive_counts_drift',
    help: 'Counts that did not match their rows in the last comparison. Always 0 unless there is a defect.',
    registers,
    aggregator: 'max',
    collect() {
      this.set(Math.max(reconciled().differences, peekWatchReport?.()?.countDrift ?? 0))
    },
  })
  new Counter({
    name: 'redrive_counts_drift_total',
    help: 'Counts that did not match their rows, since the start of this server.',
    registers,
    collect() {
      this.reset()
      this.inc(reconciled().differencesTotal)
    },
  })
  new Gauge({
    name: 'redrive_counts_compared_timestamp_seconds',
    help: 'When this server last compared counts with rows; 0 if another server does it.',
    registers,
    aggregator: 'max',
    collect() {
      this.set((reconciled().at ?? 0) / usPerSecond)
    },
  })
}

const itemGauges: TextFamily = {
  name: 'redrive_items',
  help: 'Current items of a queue by state, and in its archive. Exact. (others): all but the 500 busiest queues.',
  type: 'gauge',
  labelNames: ['queue', 'state'],
}
const itemTotals: TextFamily = {
  name: 'redrive_items_total',
  help: 'Items that a queue accepted since its creation, and how they left it. Exact.',
  type: 'counter',
  labelNames: ['queue', 'event'],
}
const events = totals.map((total) => [total, toSnakeCase(total)] as const)

function renderItems(queues: readonly QueueCounts[]): string {
  const states = queues.flatMap((counts) =>
    gauges.map((state) => ({ labels: [counts.queue ?? otherLabel, state], value: counts[state] })),
  )
  const left = queues.flatMap((counts) =>
    events.map(([total, event]) => ({ labels: [counts.queue ?? otherLabel, event], value: counts[total] })),
  )
  return renderFamily(itemGauges, states) + renderFamily(itemTotals, left)
}

/** A summary of the library that takes its values from `AnsweredRequests`. */
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

/** Returns undefined if the store fails or is too slow: the other metrics are most important then. */
async function readWithin<T>(msMax: number, read: () => Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), msMax)
  })
  // The error is not lost: redrive_store_up and /health report it.
  const answer = new Promise<T>((resolve) => resolve(read())).catch(() => undefined)
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
