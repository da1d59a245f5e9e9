/** `npm run bench -- <name> [options]`: `--help` says which there are. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { dirname } from 'node:path'
import { type BenchFacts, type BenchOptions, readArguments } from './arguments.ts'
import { CannotRun } from './cannot-run.ts'
import {
  type BenchResult,
  growthTableOf,
  memoryTableOf,
  ratioTableOf,
  tableOf,
  timedTableOf,
} from './report.ts'

type Bench = BenchFacts & Readonly<{ load(): Promise<(options: BenchOptions) => Promise<BenchResult>> }>

const benches: Readonly<Record<string, Bench>> = {
  storage: {
    about: 'produce, lease and complete through the storage contract',
    takes: ['rounds'],
    load: async () => (await import('./storage.ts')).benchStorage,
  },
  queue: {
    about: 'Redrive beside pg-boss, graphile-worker and BullMQ, and over HTTP',
    takes: ['rounds'],
    load: async () => (await import('./queue.ts')).benchQueue,
  },
  'queue-memory': {
    about: 'what Redrive keeps in memory while a million items pass through it',
    takes: ['items', 'store'],
    load: async () => (await import('./queue-memory.ts')).benchQueueMemory,
  },
  letters: {
    about: 'millions of dead letters: capture, counts, pages, searches, campaigns, archive',
    takes: ['letters', 'store'],
    load: async () => (await import('./letters.ts')).benchLetters,
  },
  'queue-beside-letters': {
    about: 'a queue in an empty store, and in one with millions of dead letters',
    takes: ['rounds', 'items', 'letters', 'store'],
    load: async () => (await import('./queue-beside-letters.ts')).benchQueueBesideLetters,
  },
}

const asked = readArguments(process.argv.slice(2), benches)
if (asked.kind === 'help') {
  console.log(asked.text)
  process.exit(0)
}
if (asked.kind === 'wrong') {
  console.error(`${asked.why}\n\n${asked.text}`)
  process.exit(2)
}

const { name, options, json: file } = asked
const say = (line: string) => console.error(line)
const bench = await (benches[name] as Bench).load()
const result = await bench({ ...options, say }).catch((error: unknown) => {
  if (!(error instanceof CannotRun)) throw error
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

const parts = [tableOf(result.measured)]
if (result.timed !== undefined) parts.push(timedTableOf(result.timed))
if (result.memory !== undefined) parts.push(memoryTableOf(result.memory), growthTableOf(result.memory))
if (result.ratios !== undefined) parts.push(ratioTableOf(result.ratios))
if (result.notes !== undefined) parts.push(result.notes.join('\n'))
console.log(parts.join('\n\n'))
const json = `${JSON.stringify(report, null, 2)}\n`
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, json)
console.log(json)
say(`written to ${file}`)
// Some peers keep timers or sockets that would hold the process; everything of ours is closed by now.
process.exit(0)
