import type { BenchResult, Measured, Ratio } from '../report.ts'

export function toMeasured(subject: string, operation: string, batch: number, perSecond: number): Measured {
  return { subject, operation, batch, callers: 1, perSecond, p50Ms: null, p99Ms: null }
}

export function compare(one: Measured, other: Measured, aim: number | null): Ratio {
  const { subject, operation, batch, perSecond } = one
  return { subject, operation, batch, against: other.subject, times: perSecond / other.perSecond, aim }
}

/** The best of several rounds; the subjects take turns, because the load of the machine changes. */
export async function alternate(
  rounds: number,
  runs: readonly (() => Promise<Measured>)[],
): Promise<readonly Measured[]> {
  const best: Measured[] = []
  for (let round = 0; round < rounds; round++)
    for (const [at, run] of runs.entries()) {
      const measured = await run()
      const known = best[at]
      if (known === undefined || measured.perSecond > known.perSecond) best[at] = measured
    }
  return best
}

export type Part = Pick<BenchResult, 'measured' | 'ratios'>
