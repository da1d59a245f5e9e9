import { setMaxListeners } from 'node:events'

/** One figure: the best of several rounds, because other work on the machine only ever slows us down. */
export type Measured = Readonly<{
  subject: string
  operation: string
  batch: number
  callers: number
  perSecond: number
  /** Of one call, in milliseconds. Null where nobody sees single calls. */
  p50Ms: number | null
  p99Ms: number | null
}>

/** How many times the rate of `against` the rate of `subject` is. `aim`: the least it should be. */
export type Ratio = Readonly<{
  subject: string
  operation: string
  batch: number
  against: string
  times: number
  aim: number | null
}>

/** After a collection of garbage. */
export type MemorySample = Readonly<{
  /** How many have passed by then. */
  items: number
  heapBytes: number
  /** The heaps of the threads that the store has. */
  threadHeapsBytes: number
  /** Buffers and what else lies outside of all those heaps. */
  outsideBytes: number
  /** Of the whole process, with what its allocators and SQLite's cache keep. */
  rssBytes: number
  /** The database, or the file with its log. */
  storeBytes: number
}>

/** `growthBytesMax`: how much more there may be in and outside of the heaps at the last sample than at the first. */
export type Memory = Readonly<{
  subject: string
  samples: readonly MemorySample[]
  growthBytes: number
  growthBytesMax: number
}>

/** How long one call takes. `aimMs`: 99 of 100 should take no longer. */
export type Timed = Readonly<{
  subject: string
  operation: string
  calls: number
  p50Ms: number
  p99Ms: number
  aimMs: number | null
}>

/** `notes`: what a reader of the figures should know, one line each. */
export type BenchResult = Readonly<{
  measured: readonly Measured[]
  timed?: readonly Timed[]
  memory?: readonly Memory[]
  ratios?: readonly Ratio[]
  notes?: readonly string[]
}>

export function tableOf(measured: readonly Measured[]): string {
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
  return aligned(header, rows, 2)
}

export function timedTableOf(timed: readonly Timed[]): string {
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
  return aligned(header, rows, 2)
}

export function ratioTableOf(ratios: readonly Ratio[]): string {
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
  return aligned(header, rows, 3)
}

export function memoryTableOf(memory: readonly Memory[]): string {
  const header = ['subject', 'items', 'heap MB', 'threads MB', 'outside MB', 'rss MB', 'store MB']
  const rows = memory.flatMap(({ subject, samples }) =>
    samples.map((sample) => [
      subject,
      sample.items.toLocaleString('en-US'),
      megabytes(sample.heapBytes),
      megabytes(sample.threadHeapsBytes),
      megabytes(sample.outsideBytes),
      megabytes(sample.rssBytes),
      megabytes(sample.storeBytes),
    ]),
  )
  return aligned(header, rows, 1)
}

export function growthTableOf(memory: readonly Memory[]): string {
  const header = ['subject', 'first MB', 'last MB', 'growth MB', 'at most', '']
  const rows = memory.map(({ subject, samples, growthBytes, growthBytesMax }) => [
    subject,
    megabytes(usedBytes(samples[0])),
    megabytes(usedBytes(samples.at(-1))),
    megabytes(growthBytes),
    megabytes(growthBytesMax),
    growthBytes <= growthBytesMax ? 'met' : 'missed',
  ])
  return aligned(header, rows, 1)
}

/** In and outside of the heaps: what the program holds on to. */
export function usedBytes(sample: MemorySample | undefined): number {
  return sample === undefined ? 0 : sample.heapBytes + sample.threadHeapsBytes + sample.outsideBytes
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}

function aligned(
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

/** Runs `call` until `calls` of them are done, `callers` at a time. */
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

export async function measureItems(what: What, bound: Bound, call: Call): Promise<Measured> {
  const meter = new Meter(what)
  await meter.run(bound, call)
  return meter.measured
}

export type What = Readonly<{ subject: string; operation: string; batch: number; callers: number }>
export type Bound = Readonly<{ items: number; msMax: number }>
/** Says how many items it handled. The signal tells calls that wait for items that there are no more. */
export type Call = (caller: number, signal: AbortSignal) => Promise<number>

/** One figure that is measured at a stretch, or in several. */
export class Meter {
  readonly #what: What
  readonly #times: number[] = []
  #handled = 0
  #ms = 0

  constructor(what: What) {
    this.#what = what
  }

  /**
   * Runs `call` until the items it says it handled add up to `items`, or the time is up: then the rate is
   * that of those handled by then.
   */
  async run(bound: Bound, call: Call): Promise<void> {
    const over = new AbortController()
    setMaxListeners(0, over.signal)
    let handled = 0
    let endedAt = 0
    const startedAt = performance.now()
    const worker = async (_: unknown, caller: number) => {
      while (!over.signal.aborted) {
        const began = performance.now()
        const count = await call(caller, over.signal)
        const now = performance.now()
        if (over.signal.aborted) return
        handled += count
        if (count > 0) this.#times.push(now - began)
        endedAt = now
        if (handled >= bound.items || now - startedAt >= bound.msMax) over.abort()
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

/** For each figure its best round. */
export function bestOf(rounds: readonly (readonly Measured[])[]): Measured[] {
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
