/** The cost of watching: CPU of the server between scrapes, and the duration of scrapes. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseKafkaClusters } from '../server/src/config/kafka-clusters.ts'
import { readSettings } from '../server/src/config/settings/read-settings.ts'
import { type Settings, settingsTable } from '../server/src/config/settings/settings.ts'
import { createLogger } from '../server/src/ops/log/log.ts'
import { startServer } from '../server/src/server.ts'
import { openTestKafka } from '../server/test/kafka/test-kafka.ts'
import { startPrivateKafka, startPrivateRedis } from '../tools/services/index.ts'
import type { BenchOptions } from './arguments.ts'
import { type BenchStore, openBenchStores, storeNames } from './bench-stores.ts'
import type { BenchResult, Timed } from './report.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

const workers = 10_000
const queues = 500
const deadQueues = 100
const groups = 100
const percentMax = 2
const scrapeMsMax = 50

type Kind = 'none' | 'redis' | 'http'
type Figures = Readonly<{ percent: number; scrapeMs: readonly number[]; bytes: number }>
type Services = Readonly<{ redis: string; brokers: readonly string[] }>

export async function benchWatching({
  stores: kinds,
  isQuick,
  only,
  log,
}: BenchOptions): Promise<BenchResult> {
  const seconds = isQuick ? 10 : 40
  const services = await startServices()
  await using stores = await openBenchStores(kinds)
  const timed: Timed[] = []
  const notes: string[] = [...stores.notes, `CPU is measured for ${seconds} s, in percent of one core`]
  for (const store of kinds)
    for (const kind of ['none', 'redis', 'http'] as const) {
      if (only !== undefined && !kind.includes(only)) continue
      const figures = await measure(await stores.create(store), kind, services, seconds)
      const name = `${storeNames[store]}, ${kind === 'none' ? 'no workers, no groups' : `${workers} workers, ${kind}`}`
      const aim = kind === 'none' ? '' : ` (aim: less than ${percentMax} %)`
      notes.push(`${name}: ${figures.percent.toFixed(2)} %${aim}; a scrape has ${figures.bytes} bytes`)
      log(notes.at(-1) ?? '')
      timed.push(toTimed(name, figures.scrapeMs))
    }
  return { measured: [], timed, notes }
}

function toTimed(subject: string, scrapeMs: readonly number[]): Timed {
  const sorted = scrapeMs.toSorted((a, b) => a - b)
  const at = (part: number): number =>
    sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? 0
  const facts = { operation: 'scrape', calls: sorted.length, aimMs: scrapeMsMax }
  return { subject, ...facts, p50Ms: at(0.5), p99Ms: at(0.99) }
}

async function startServices(): Promise<Services> {
  const [redis, kafka] = [await startPrivateRedis(), await startPrivateKafka()]
  if (!redis.isFound) throw new UnmetRequirement(`Redis is not available: ${redis.reason}`)
  if (!kafka.isFound) throw new UnmetRequirement(`Kafka is not available: ${kafka.reason}`)
  const test = openTestKafka(kafka.brokers)
  await test.createTopic('orders')
  await test.send(Array.from({ length: 100 }, (_, at) => ({ topic: 'orders', value: `${at}` })))
  for (let at = 0; at < groups; at++) await test.commit(`group-${at}`, 'orders', [at])
  await test.close()
  return { redis: redis.url, brokers: kafka.brokers }
}

async function measure(store: BenchStore, kind: Kind, services: Services, seconds: number): Promise<Figures> {
  const cluster = { main: { brokers: services.brokers } }
  const server = await startServer({
    settings: {
      ...readSettings(settingsTable, []).settings,
      port: 0,
      ...(kind !== 'none' && { 'kafka.clusters': parseKafkaClusters(JSON.stringify(cluster)) }),
      ...(kind === 'redis' && { 'redis.url': services.redis }),
    } as Settings,
    store: store.target,
    log: createLogger({ level: 'silent', isPretty: false, destination: { write: () => {} } }),
  })
  let sender: ChildProcess | undefined
  try {
    await createQueues(server.url)
    if (kind !== 'none') sender = await startWorkers(kind, kind === 'redis' ? services.redis : server.url)
    await pause(10)
    const percent = await measureCpu(seconds)
    const scrapes = await scrape(server.url)
    return { percent, ...scrapes }
  } finally {
    sender?.kill('SIGKILL')
    await server.stop(0)
    await store.remove()
  }
}

async function createQueues(url: string): Promise<void> {
  const call = async (path: string, body: object): Promise<void> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    await response.body?.cancel()
  }
  for (let at = 0; at < queues; at++) {
    const isDead = at < deadQueues
    const policy = isDead ? {} : { dead_queue: `queue-${at % deadQueues}` }
    await call('/api/v1/queues', { name: `queue-${at}`, policy })
    if (!isDead) continue
    const letters = Array.from({ length: 20 }, (_, letter) => ({
      original_queue: 'orders',
      original_value: 'x',
      source_id: `${letter}`,
      error_details: { exception_class: `Error${letter % 5}`, message: 'it failed' },
    }))
    await call('/api/v1/letters', { queue: `queue-${at}`, letters })
  }
}

async function startWorkers(kind: Kind, url: string): Promise<ChildProcess> {
  const program = fileURLToPath(new URL('./watching/heartbeats-process.ts', import.meta.url))
  const child = fork(program, [kind, url, String(workers)])
  await once(child, 'message')
  return child
}

/** The CPU time of this process and its threads, in percent of one core. */
async function measureCpu(seconds: number): Promise<number> {
  const [before, startedAt] = [process.cpuUsage(), performance.now()]
  await pause(seconds)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000 / (performance.now() - startedAt) / 0.01
}

const scrapeCount = 40

async function scrape(url: string): Promise<Omit<Figures, 'percent'>> {
  const scrapeMs: number[] = []
  let bytes = 0
  for (let at = 0; at < scrapeCount; at++) {
    const startedAt = performance.now()
    bytes = (await (await fetch(`${url}/metrics`)).text()).length
    scrapeMs.push(performance.now() - startedAt)
    // Scrapes at the same time would share their text; let the loops of the server run between them.
    await pause(0.1)
  }
  return { scrapeMs, bytes }
}

async function pause(seconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
}
