import { setMaxListeners } from 'node:events'
import type { Scores } from '../server/test/labelled-failures/score-groups.ts'

/** One figure: the best of several rounds, because other work on the machine can only slow a round down. */
export type Measured = Readonly<{
  subject: string
  operation: string
  batch: number
  callers: number
  perSecond: number
  /** The duration of one call. Null if single calls cannot be observed. */
  p50Ms: number | null
  p99Ms: number | null
}>

/**
 * `times`: the rate of `subject` divided by the rate of `against`. `aim`: the minimum that it should reach.
 */
export type Ratio = Readonly<{
  subject: string
  operation: string
  batch: number
  against: string
  times: number
  aim: number | null
}>

/** Memory after a garbage collection. */
export type MemorySample = Readonly<{
  /** The number of items that were completed before the sample. */
  items: number
  heapBytes: number
  /** The heaps of the store's threads. */
  threadHeapsBytes: number
  /** Buffers and other memory outside of these heaps. */
  outsideBytes: number
  /** The whole process, including the reserves of its allocators and SQLite's cache. */
  rssBytes: number
  /** The size of the database, or of the file with its WAL. */
  storeBytes: number
}>

/**
 * `growthBytesMax`: the allowed growth of the memory in and outside of the heaps, from first to last sample.
 */
export type Memory = Readonly<{
  subject: string
  samples: readonly MemorySample[]
  growthBytes: number
  growthBytesMax: number
}>

/** The duration of one call. `aimMs`: the p99 that should be reached. */
export type Timed = Readonly<{
  subject: string
  operation: string
  calls: number
  p50Ms: number
  p99Ms: number
  aimMs: number | null
}>

/**
 * How well a rule grouped a data set. `usEach`: time per failure. `aim`: the accuracy that it should reach.
 */
export type Grouped = Readonly<Scores & { data: string; rule: string; usEach: number; aim: number | null }>

/** `notes`: background information for readers of the figures, one line each. */
export type BenchResult = Readonly<{
  measured: readonly Measured[]
  timed?: readonly Timed[]
  memory?: readonly Memory[]
  ratios?: readonly Ratio[]
  grouped?: readonly Grouped[]
  notes?: readonly string[]
}>

export function formatRates(measured: readonly Measured[]): string {
  const header = ['subject', 'operation', 'batch', 'callers', 'items/s', 'p50 ms', 'p99 ms']
  const rows = measured.map((one) => [
    one.subject,
    one.operation,
    String(one.batch),
    String(one.callers),
    Math.round(one.perSecond).toLocaleString('en-US'),
    one.p50Ms?.toFixed(2) ?? '-',
    one.p99Ms?.toFixed(2) ?? '-',
  ])
  return alignColumns(header, rows, 2)
}

export function formatGrouped(grouped: readonly Grouped[]): string {
  const header = [
    'data',
    'rule',
    'accuracy',
    'exact causes',
    'groups',
    'F1',
    'split',
    'merged',
    'confused',
    'us each',
    'aim',
    '',
  ]
  const rows = grouped.map((one) => [
    one.data,
    one.rule,
    one.accuracy.toFixed(3),
    `${one.exact}/${one.causes}`,
    String(one.groups),
    one.f1.toFixed(3),
    String(one.split),
    String(one.merged),
    one.families === 0 ? '-' : `${one.confused}/${one.families}`,
    one.usEach.toFixed(1),
    one.aim?.toFixed(2) ?? '-',
    one.aim === null ? '' : one.accuracy >= one.aim ? 'met' : 'missed',
  ])
  return alignColumns(header, rows, 2)
}

export function formatTimes(timed: readonly Timed[]): string {
  const header = ['subject', 'operation', 'calls', 'p50 ms', 'p99 ms', 'aim ms', '']
  const rows = timed.map(({ subject, operation, calls, p50Ms, p99Ms, aimMs }) => [
    subject,
    operation,
    String(calls),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    aimMs === null ? '-' : String(aimMs),
    aimMs === null ? '' : p99Ms <= aimMs ? 'met' : 'missed',
  ])
  return alignColumns(header, rows, 2)
}

export function formatRatios(ratios: readonly Ratio[]): string {
  const header = ['subject', 'operation', 'compared with', 'batch', 'times', 'aim', '']
  const rows = ratios.map(({ subject, operation, against, batch, times, aim }) => [
    subject,
    operation,
    against,
    String(batch),
    times.toFixed(2),
    aim === null ? '-' : String(aim),
    aim === null ? '' : times >= aim ? 'met' : 'missed',
  ])
  return alignColumns(header, rows, 3)
}

export function formatMemory(memory: readonly Memory[]): string {
  const header = ['subject', 'items', 'heap MB', 'threads MB', 'outside MB', 'rss MB', 'store MB']
  const rows = memory.flatMap(({ subject, samples }) =>
    samples.map((sample) => [
      subject,
      sample.items.toLocaleString('en-US'),
      formatMegabytes(sample.heapBytes),
      formatMegabytes(sample.threadHeapsBytes),
      formatMegabytes(sample.outsideBytes),
      formatMegabytes(sample.rssBytes),
      formatMegabytes(sample.storeBytes),
    ]),
  )
  return alignColumns(header, rows, 1)
}

export function formatGrowth(memory: readonly Memory[]): string {
  const header = ['subject', 'first MB', 'last MB', 'growth MB', 'at most', '']
  const rows = memory.map(({ subject, samples, growthBytes, growthBytesMax }) => [
    subject,
    formatMegabytes(sumUsedBytes(samples[0])),
    formatMegabytes(sumUsedBytes(samples.at(-1))),
    formatMegabytes(growthBytes),
    formatMegabytes(growthBytesMax),
    growthBytes <= growthBytesMax ? 'met' : 'missed',
  ])
  return alignColumns(header, rows, 1)
}

/** The memory in use by the program, in and outside of the heaps. */
export function sumUsedBytes(sample: MemorySample | undefined): number {
  return sample === undefined ? 0 : sample.heapBytes + sample.threadHeapsBytes + sample.outsideBytes
}

function formatMegabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}

function alignColumns(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  textColumns: number,
): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        column < textColumns ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [line(header), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}

/** Runs `call` `calls` times, with `callers` concurrent calls. */
export async function measure(
  what: Readonly<{ subject: string; operation: string; batch: number; callers: number; calls: number }>,
  call: () => Promise<void>,
): Promise<Measured> {
  const times: number[] = []
  let left = what.calls
  const startedAt = performance.now()
  const worker = async () => {
    while (left-- > 0) {
      const at = performance.now()
      await call()
      times.push(performance.now() - at)
    }
  }
  await Promise.all(Array.from({ length: what.callers }, worker))
  const seconds = (performance.now() - startedAt) / 1000
  times.sort((a, b) => a - b)
  const { calls, ...rest } = what
  return {
    ...rest,
    perSecond: (calls * what.batch) / seconds,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  }
}

export async function measureItems(
  what: MeterSubject,
  bound: MeterLimits,
  call: MeterCall,
): Promise<Measured> {
  const meter = new Meter(what)
  await meter.run(bound, call)
  return meter.measured
}

export type MeterSubject = Readonly<{ subject: string; operation: string; batch: number; callers: number }>
export type MeterLimits = Readonly<{ items: number; msMax: number }>
/** Resolves with the number of handled items. The signal ends calls that wait for items. */
export type MeterCall = (caller: number, signal: AbortSignal) => Promise<number>

/** Measures one figure, in one run or in several. */
export class Meter {
  readonly #what: MeterSubject
  readonly #times: number[] = []
  #handled = 0
  #ms = 0

  constructor(what: MeterSubject) {
    this.#what = what
  }

  /**
   * Runs `call` until `items` items are handled or `msMax` has passed. The rate is that of the handled items.
   */
  async run(bound: MeterLimits, call: MeterCall): Promise<void> {
    const finished = new AbortController()
    setMaxListeners(0, finished.signal)
    let handled = 0
    let endedAt = 0
    const startedAt = performance.now()
    const worker = async (_: unknown, caller: number) => {
      while (!finished.signal.aborted) {
        const startedAtMs = performance.now()
        const count = await call(caller, finished.signal)
        const now = performance.now()
        if (finished.signal.aborted) return
        handled += count
        if (count > 0) this.#times.push(now - startedAtMs)
        endedAt = now
        if (handled >= bound.items || now - startedAt >= bound.msMax) finished.abort()
      }
    }
    await Promise.all(Array.from({ length: this.#what.callers }, worker))
    this.#handled += handled
    this.#ms += endedAt - startedAt
  }

  get measured(): Measured {
    const times = this.#times.toSorted((a, b) => a - b)
    return {
      ...this.#what,
      perSecond: this.#handled / (this.#ms / 1000),
      p50Ms: quantile(times, 0.5),
      p99Ms: quantile(times, 0.99),
    }
  }
}

/** Selects the best round of each figure. */
export function selectBest(rounds: readonly (readonly Measured[])[]): Measured[] {
  const best = new Map<string, Measured>()
  for (const one of rounds.flat()) {
    const key = [one.subject, one.operation, one.batch, one.callers].join('|')
    const known = best.get(key)
    if (known === undefined || one.perSecond > known.perSecond) best.set(key, one)
  }
  return [...best.values()]
}

export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? 0
}
