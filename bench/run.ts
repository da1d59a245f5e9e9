/** `npm run bench -- <name> [--json <file>] [--rounds <n>] [--quick]` */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { PeersMissing } from './peers/peer.ts'
import { type Measured, type Ratio, ratioTableOf, tableOf } from './report.ts'

export type BenchOptions = Readonly<{ rounds: number; isQuick: boolean; say(line: string): void }>
/** `notes`: what a reader of the figures should know, one line each. */
export type BenchResult = Readonly<{
  measured: readonly Measured[]
  ratios?: readonly Ratio[]
  notes?: readonly string[]
}>
type Bench = (options: BenchOptions) => Promise<BenchResult>

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  storage: async () => (await import('./storage.ts')).benchStorage,
  queue: async () => (await import('./queue.ts')).benchQueue,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    quick: { type: 'boolean', default: false },
  },
})
const name = positionals[0] ?? ''
const load = benches[name]
const rounds = Number(values.rounds)
if (load === undefined || !Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
  const why =
    load === undefined ? `there is no benchmark "${name}"` : '--rounds takes a whole number from 1 to 100'
  console.error(
    `${why}; usage: npm run bench -- <${Object.keys(benches).join('|')}> [--json file] [--rounds 3] [--quick]`,
  )
  process.exit(2)
}

const say = (line: string) => console.error(line)
const bench = await load()
const result = await bench({ rounds, isQuick: values.quick, say }).catch((error: unknown) => {
  if (!(error instanceof PeersMissing)) throw error
  console.error(error.message)
  process.exit(1)
})
const machine = {
  cores: cpus().length,
  cpu: cpus()[0]?.model ?? 'unknown',
  memoryBytes: totalmem(),
  node: process.version,
}
const report = {
  bench: name,
  at: new Date().toISOString(),
  rounds,
  isQuick: values.quick,
  machine,
  ...result,
}

console.log(tableOf(result.measured))
if (result.ratios !== undefined) console.log(`\n${ratioTableOf(result.ratios)}`)
if (result.notes !== undefined) console.log(`\n${result.notes.join('\n')}`)
const json = `${JSON.stringify(report, null, 2)}\n`
const file = values.json ?? `bench/results/${name}.json`
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, json)
console.log(json)
say(`written to ${file}`)
// Some peers keep timers or sockets that would hold the process; everything of ours is closed by now.
process.exit(0)
