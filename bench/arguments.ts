/** The arguments of `npm run bench -- …`. */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'

export type StoreKind = 'postgres' | 'sqlite'
export type BenchOptions = Readonly<{
  rounds: number
  isQuick: boolean
  /** Undefined: the default of the benchmark. */
  items?: number | undefined
  letters?: number | undefined
  stores: readonly StoreKind[]
  /** The URL of another server to compare with. */
  peer?: string | undefined
  /** Part of the names to run. Undefined: all. */
  only?: string | undefined
  /** The folder with the data to measure. */
  data?: string | undefined
  /** The seed of generated data. Undefined: always the same. */
  seed?: number | undefined
  log(line: string): void
}>

const optionTexts = {
  rounds: ['--rounds <n>', 'how often each figure is measured, 1 to 100; the best counts (default 3)'],
  items: ['--items <n>', 'number of items, instead of the default of the benchmark'],
  letters: [
    '--letters <n>',
    'number of dead letters (default 5,000,000 on PostgreSQL, 1,000,000 in a SQLite file)',
  ],
  store: ['--store <kind>', 'only this store: postgres or sqlite'],
  peer: ['--peer <url>', 'also measure this running server, which implements the Queue API'],
  only: ['--only <text>', 'only the parts of the benchmark whose name contains this text'],
  data: ['--data <folder>', 'labelled failures: *.ndjson, *.ndjson.gz and loghub/*.csv'],
  seed: [
    '--seed <n>',
    'the seed of generated failures: a number or "random"; each is a corpus of other causes',
  ],
} as const
type OptionName = keyof typeof optionTexts
export type BenchFacts = Readonly<{ description: string; accepts: readonly OptionName[] }>
type Benches = Readonly<Record<string, BenchFacts>>

export type ParsedArguments =
  | Readonly<{ kind: 'help'; text: string }>
  | Readonly<{ kind: 'invalid'; reason: string; text: string }>
  | Readonly<{ kind: 'run'; name: string; json: string; options: Omit<BenchOptions, 'log'> }>

const countMax = 1_000_000_000
const roundsMax = 100

export function parseArguments(args: readonly string[], benches: Benches): ParsedArguments {
  const text = formatUsage(benches)
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        json: { type: 'string' },
        quick: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        items: { type: 'string' },
        letters: { type: 'string' },
        store: { type: 'string' },
        peer: { type: 'string' },
        only: { type: 'string' },
        data: { type: 'string' },
        seed: { type: 'string' },
      },
    })
    if (values.help) return { kind: 'help', text }
    const [name, bench] = findBench(positionals, benches)
    checkAccepted(name, bench, values)
    return {
      kind: 'run',
      name,
      json: values.json ?? `bench/results/${name}.json`,
      options: {
        isQuick: values.quick,
        rounds: parseCount('rounds', values.rounds, roundsMax) ?? (bench.accepts.includes('rounds') ? 3 : 1),
        items: parseCount('items', values.items, countMax),
        letters: parseCount('letters', values.letters, countMax),
        stores: parseStores(values.store),
        peer: parsePeer(values.peer),
        only: values.only,
        data: values.data,
        seed: values.seed === 'random' ? randomInt(countMax) : parseCount('seed', values.seed, countMax),
      },
    }
  } catch (error) {
    return { kind: 'invalid', reason: describeUsageError(error), text }
  }
}

class UsageError extends Error {}

function findBench(
  positionals: readonly string[],
  benches: Benches,
): readonly [name: string, bench: BenchFacts] {
  const [name, ...others] = positionals
  if (name === undefined) throw new UsageError('the name of a benchmark is missing')
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined
  if (bench === undefined) throw new UsageError(`there is no benchmark "${name}"`)
  if (others.length > 0) throw new UsageError(`run ${name} and ${others.join(', ')} one at a time`)
  return [name, bench]
}

function checkAccepted(name: string, bench: BenchFacts, values: Readonly<Record<string, unknown>>): void {
  for (const option of Object.keys(optionTexts) as OptionName[]) {
    if (values[option] !== undefined && !bench.accepts.includes(option))
      throw new UsageError(`${name} does not accept --${option}`)
  }
}

/** Rethrows errors that are not caused by the arguments. */
function describeUsageError(error: unknown): string {
  if (error instanceof UsageError) return error.message
  // parseArgs throws a TypeError with a code. Only its first sentence applies here.
  if (error instanceof TypeError && 'code' in error) return error.message.split('. ')[0] ?? ''
  throw error
}

function parseCount(option: OptionName, text: string | undefined, max: number): number | undefined {
  if (text === undefined) return undefined
  const count = /^\d+$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= max) return count
  const range = `1 to ${max.toLocaleString('en-US')}`
  throw new UsageError(`--${option} accepts a whole number from ${range}, not "${text}"`)
}

function parseStores(text: string | undefined): readonly StoreKind[] {
  if (text === undefined) return ['postgres', 'sqlite']
  if (text === 'postgres' || text === 'sqlite') return [text]
  throw new UsageError(`--store accepts postgres or sqlite, not "${text}"`)
}

function parsePeer(text: string | undefined): string | undefined {
  if (text === undefined || /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(text)) return text
  throw new UsageError(`--peer accepts a URL of this machine such as http://127.0.0.1:2319, not "${text}"`)
}

function formatUsage(benches: Benches): string {
  const line = (name: string, description: string) => `  ${name.padEnd(22)}${description}`
  return [
    'usage: npm run bench -- <name> [options]',
    '',
    ...Object.entries(benches).flatMap(([name, { description, accepts }]) => [
      line(name, description),
      line('', accepts.map((option) => `[${optionTexts[option][0]}]`).join(' ')),
    ]),
    '',
    ...Object.values(optionTexts).map(([option, description]) => line(option, description)),
    line('--quick', 'much smaller numbers, for a first look'),
    line('--json <file>', 'the file for the figures (default bench/results/<name>.json)'),
    line('--help', 'this text'),
  ].join('\n')
}
