/** What `npm run bench -- …` can be told. */
import { parseArgs } from 'node:util'

export type StoreKind = 'postgres' | 'sqlite'
export type BenchOptions = Readonly<{
  rounds: number
  isQuick: boolean
  /** Undefined: as many as the benchmark has by itself. */
  items?: number | undefined
  letters?: number | undefined
  stores: readonly StoreKind[]
  say(line: string): void
}>

const optionals = {
  rounds: ['--rounds <n>', 'how often each figure is measured, 1 to 100; the best counts (default 3)'],
  items: ['--items <n>', 'how many items, instead of the number that belongs to the benchmark'],
  letters: [
    '--letters <n>',
    'how many dead letters (default 5,000,000 on PostgreSQL, 1,000,000 in a SQLite file)',
  ],
  store: ['--store <kind>', 'only this one: postgres or sqlite'],
} as const
type Optional = keyof typeof optionals
export type BenchFacts = Readonly<{ about: string; takes: readonly Optional[] }>

export type ReadArguments =
  | Readonly<{ kind: 'help'; text: string }>
  | Readonly<{ kind: 'wrong'; why: string; text: string }>
  | Readonly<{ kind: 'run'; name: string; json: string; options: Omit<BenchOptions, 'say'> }>

const countMax = 1_000_000_000
const roundsMax = 100

export function readArguments(
  args: readonly string[],
  benches: Readonly<Record<string, BenchFacts>>,
): ReadArguments {
  const text = usageOf(benches)
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
      },
    })
    if (values.help) return { kind: 'help', text }
    const [name, ...others] = positionals
    if (name === undefined) throw new Wrong('which benchmark?')
    const bench = Object.hasOwn(benches, name) ? benches[name] : undefined
    if (bench === undefined) throw new Wrong(`there is no benchmark "${name}"`)
    if (others.length > 0) throw new Wrong(`one benchmark at a time: ${name}, or ${others.join(', ')}`)
    for (const option of Object.keys(optionals) as Optional[]) {
      if (values[option] !== undefined && !bench.takes.includes(option))
        throw new Wrong(`${name} takes no --${option}`)
    }
    return {
      kind: 'run',
      name,
      json: values.json ?? `bench/results/${name}.json`,
      options: {
        isQuick: values.quick,
        rounds: countOf('rounds', values.rounds, roundsMax) ?? (bench.takes.includes('rounds') ? 3 : 1),
        items: countOf('items', values.items, countMax),
        letters: countOf('letters', values.letters, countMax),
        stores: storesOf(values.store),
      },
    }
  } catch (error) {
    // What parseArgs throws is a TypeError with a code of its own; anything else is a defect.
    const isForeseen = error instanceof Wrong || (error instanceof TypeError && 'code' in error)
    if (!isForeseen) throw error
    // Its first sentence says what is wrong; the others advise on things that mean nothing here.
    const why = error instanceof Wrong ? error.message : (error.message.split('. ')[0] ?? '')
    return { kind: 'wrong', why, text }
  }
}

class Wrong extends Error {}

function countOf(option: Optional, text: string | undefined, max: number): number | undefined {
  if (text === undefined) return undefined
  const count = /^\d+$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= max) return count
  throw new Wrong(`--${option} takes a whole number from 1 to ${max.toLocaleString('en-US')}, not "${text}"`)
}

function storesOf(text: string | undefined): readonly StoreKind[] {
  if (text === undefined) return ['postgres', 'sqlite']
  if (text === 'postgres' || text === 'sqlite') return [text]
  throw new Wrong(`--store takes postgres or sqlite, not "${text}"`)
}

function usageOf(benches: Readonly<Record<string, BenchFacts>>): string {
  const line = (name: string, about: string) => `  ${name.padEnd(22)}${about}`
  return [
    'usage: npm run bench -- <name> [options]',
    '',
    ...Object.entries(benches).flatMap(([name, { about, takes }]) => [
      line(name, about),
      line('', takes.map((option) => `[${optionals[option][0]}]`).join(' ')),
    ]),
    '',
    ...Object.values(optionals).map(([written, about]) => line(written, about)),
    line('--quick', 'much fewer of everything: for a first look'),
    line('--json <file>', 'where the figures are written (default bench/results/<name>.json)'),
    line('--help', 'this text'),
  ].join('\n')
}
