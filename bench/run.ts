/** `npm run bench -- <name> [--json <file>] [--rounds <n>] [--quick]` */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { type Measured, tableOf } from './report.ts'

export type BenchOptions = Readonly<{ rounds: number; isQuick: boolean; say(line: string): void }>
type Bench = (options: BenchOptions) => Promise<readonly Measured[]>

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  storage: async () => (await import('./storage.ts')).benchStorage,
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
const measured = await bench({ rounds, isQuick: values.quick, say })
const machine = {
  cores: cpus().length,
  cpu: cpus()[0]?.model ?? 'unknown',
  memoryBytes: totalmem(),
  node: process.version,
}
const report = { bench: name, at: new Date().toISOString(), rounds, isQuick: values.quick, machine, measured }

console.log(tableOf(measured))
const json = `${JSON.stringify(report, null, 2)}\n`
const file = values.json ?? `bench/results/${name}.json`
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, json)
console.log(json)
say(`written to ${file}`)
// Some peers keep timers or sockets that would hold the process; everything of ours is closed by now.
process.exit(0)
