/** One figure: the best of several rounds, because other work on the machine only ever slows us down. */
export type Measured = Readonly<{
  subject: string
  operation: string
  batch: number
  callers: number
  perSecond: number
  /** Of one call, in milliseconds. */
  p50Ms: number
  p99Ms: number
}>

export function tableOf(measured: readonly Measured[]): string {
  const header = ['subject', 'operation', 'batch', 'callers', 'items/s', 'p50 ms', 'p99 ms']
  const rows = measured.map((one) => [
    one.subject,
    one.operation,
    String(one.batch),
    String(one.callers),
    Math.round(one.perSecond).toLocaleString('en-US'),
    one.p50Ms.toFixed(2),
    one.p99Ms.toFixed(2),
  ])
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
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
  return { ...rest, perSecond: (calls * what.batch) / seconds, p50Ms: at(times, 0.5), p99Ms: at(times, 0.99) }
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

function at(sorted: readonly number[], quantile: number): number {
  return sorted[Math.min(Math.floor(sorted.length * quantile), sorted.length - 1)] ?? 0
}
