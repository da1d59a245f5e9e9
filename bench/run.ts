/** `npm run bench -- <name> [options]`; `--help` lists the benchmarks. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { dirname } from 'node:path'
import { type BenchFacts, type BenchOptions, parseArguments } from './arguments.ts'
import {
  type BenchResult,
  formatGrouped,
  formatGrowth,
  formatMemory,
  formatRates,
  formatRatios,
  formatTimes,
} from './report.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

type Bench = BenchFacts & Readonly<{ load(): Promise<(options: BenchOptions) => Promise<BenchResult>> }>

const benches: Readonly<Record<string, Bench>> = {
  storage: {
    description: 'produce, lease and complete through the storage contract',
    accepts: ['rounds'],
    load: async () => (await import('./storage.ts')).benchStorage,
  },
  queue: {
    description: 'Redrive compared with pg-boss, graphile-worker and BullMQ, and over HTTP',
    accepts: ['rounds'],
    load: async () => (await import('./queue.ts')).benchQueue,
  },
  http: {
    description: 'single items over HTTP: requests and CPU per request, by number of processes',
    accepts: ['rounds', 'peer'],
    load: async () => (await import('./http-servers.ts')).benchHttpServers,
  },
  access: {
    description: 'the cost of checking a key, of a namespace, and of audit rows',
    accepts: ['rounds', 'store'],
    load: async () => (await import('./access.ts')).benchAccess,
  },
  'many-queues': {
    description: 'the rate of single calls on one queue, on 16 and on 256',
    accepts: ['rounds', 'items', 'store'],
    load: async () => (await import('./many-queues.ts')).benchManyQueues,
  },
  'queue-memory': {
    description: 'the memory of Redrive while it processes a million items',
    accepts: ['items', 'store'],
    load: async () => (await import('./queue-memory.ts')).benchQueueMemory,
  },
  attack: {
    description: 'requests that try to end or stop the server: survival, memory, unanswered health checks',
    accepts: ['store', 'only'],
    load: async () => (await import('./attack.ts')).benchAttack,
  },
  letters: {
    description: 'millions of dead letters: capture, counts, pages, searches, campaigns, archive',
    accepts: ['letters', 'store'],
    load: async () => (await import('./letters.ts')).benchLetters,
  },
  kafka: {
    description: 'the Kafka bridge, redrives and the worker, beside the bare client',
    accepts: ['rounds', 'only'],
    load: async () => (await import('./kafka.ts')).benchKafka,
  },
  webhooks: {
    description: 'pushes to seven consumers beside a bare loop, and /dlq-status with millions of dead jobs',
    accepts: ['rounds', 'items', 'letters', 'store', 'only'],
    load: async () => (await import('./webhooks.ts')).benchWebhooks,
  },
  watching: {
    description: 'the cost of watching 10,000 workers, 500 queues and 100 groups, and of a scrape',
    accepts: ['only', 'store'],
    load: async () => (await import('./watching.ts')).benchWatching,
  },
  grouping: {
    description: 'how well letters are grouped by cause, beside other rules, on labelled failures',
    accepts: ['data', 'seed'],
    load: async () => (await import('./grouping.ts')).benchGrouping,
  },
  'queue-beside-letters': {
    description: 'a queue in an empty store, and in a store with millions of dead letters',
    accepts: ['rounds', 'items', 'letters', 'store'],
    load: async () => (await import('./queue-beside-letters.ts')).benchQueueBesideLetters,
  },
}

const parsed = parseArguments(process.argv.slice(2), benches)
if (parsed.kind === 'help') {
  console.log(parsed.text)
  process.exit(0)
}
if (parsed.kind === 'invalid') {
  console.error(`${parsed.reason}\n\n${parsed.text}`)
  process.exit(2)
}

const { name, options, json: file } = parsed
const log = (line: string) => console.error(line)
const bench = await (benches[name] as Bench).load()
const result = await bench({ ...options, log }).catch((error: unknown) => {
  if (!(error instanceof UnmetRequirement)) throw error
  console.error(error.message)
  process.exit(1)
})
const machine = {
  cores: cpus().length,
  cpu: cpus()[0]?.model ?? 'unknown',
  memoryBytes: totalmem(),
  node: process.version,
}
const report = { bench: name, at: new Date().toISOString(), ...options, machine, ...result }

const parts = result.measured.length === 0 ? [] : [formatRates(result.measured)]
if (result.grouped !== undefined) parts.push(formatGrouped(result.grouped))
if (result.timed !== undefined) parts.push(formatTimes(result.timed))
if (result.memory !== undefined) parts.push(formatMemory(result.memory), formatGrowth(result.memory))
if (result.ratios !== undefined) parts.push(formatRatios(result.ratios))
if (result.notes !== undefined) parts.push(result.notes.join('\n'))
console.log(parts.join('\n\n'))
const json = `${JSON.stringify(report, null, 2)}\n`
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, json)
console.log(json)
log(`written to ${file}`)
// Some peers leave timers or sockets open, which would keep the process alive.
process.exit(0)
