/**
 * How well letters are grouped by cause, on labelled failures: `npm run bench -- grouping --data DIR`. DIR
 * contains corpora of failures (`*.ndjson`, `*.ndjson.gz`) and log sets (`loghub/*.csv`). The project has no
 * such data itself.
 */
import { performance } from 'node:perf_hooks'
import type { BenchOptions } from './arguments.ts'
import { type DataSet, readGroupingData } from './grouping/read-data.ts'
import { groupingRules } from './grouping/rules.ts'
import { scoreGroups } from './grouping/scores.ts'
import type { BenchResult, Grouped } from './report.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

const accuracyAim = { corpus: 0.95, logs: 0.88 }

export async function benchGrouping({ data, log }: BenchOptions): Promise<BenchResult> {
  if (data === undefined) throw new UnmetRequirement('name the folder with labelled failures: --data DIR')
  const { corpora, logs } = readGroupingData(data)
  const grouped: Grouped[] = []
  for (const corpus of corpora) {
    log(`grouping the ${corpus.failures.length.toLocaleString('en-US')} failures of ${corpus.name}`)
    for (const rule of groupingRules) grouped.push(measure(corpus, rule, accuracyAim.corpus))
  }
  const means: Grouped[] = []
  for (const rule of groupingRules) {
    const ofLogs = logs.map((set) => measure(set, rule, null))
    grouped.push(...ofLogs)
    if (ofLogs.length > 0) means.push(toMean(rule.name, ofLogs))
  }
  return {
    measured: [],
    grouped: [...grouped, ...means],
    notes: [
      'accuracy: the share of failures whose group is exactly their cause',
      'confused: families of near misses of which two causes share a group',
    ],
  }
}

function measure(
  { name, failures }: DataSet,
  rule: (typeof groupingRules)[number],
  aim: number | null,
): Grouped {
  const start = performance.now()
  const groups = rule.group(failures)
  const usEach = ((performance.now() - start) * 1_000) / failures.length
  const scores = scoreGroups(
    failures.map(({ cause }) => cause),
    groups,
  )
  return { data: name, rule: rule.name, ...scores, usEach, aim: rule.name === 'Redrive' ? aim : null }
}

function toMean(rule: string, ofLogs: readonly Grouped[]): Grouped {
  const mean = (read: (each: Grouped) => number) =>
    ofLogs.reduce((sum, each) => sum + read(each), 0) / ofLogs.length
  const total = (read: (each: Grouped) => number) => ofLogs.reduce((sum, each) => sum + read(each), 0)
  return {
    data: `mean of ${ofLogs.length} log sets`,
    rule,
    failures: total(({ failures }) => failures),
    causes: total(({ causes }) => causes),
    groups: total(({ groups }) => groups),
    accuracy: mean(({ accuracy }) => accuracy),
    exact: total(({ exact }) => exact),
    f1: mean(({ f1 }) => f1),
    split: total(({ split }) => split),
    merged: total(({ merged }) => merged),
    families: 0,
    confused: 0,
    usEach: mean(({ usEach }) => usEach),
    aim: rule === 'Redrive' ? accuracyAim.logs : null,
  }
}
