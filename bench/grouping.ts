/**
 * How well letters are grouped by cause, on labelled failures: generated ones, and those of `--data DIR`,
 * which contains corpora of failures (`*.ndjson`, `*.ndjson.gz`) and log sets (`loghub/*.csv`).
 */
import { performance } from 'node:perf_hooks'
import { createCorpus } from '../server/test/labelled-failures/create-corpus.ts'
import { scoreGroups } from '../server/test/labelled-failures/score-groups.ts'
import type { BenchOptions } from './arguments.ts'
import { type DataSet, readGroupingData } from './grouping/read-data.ts'
import { groupingRules } from './grouping/rules.ts'
import { describeUniqueMessages } from './grouping/unique-messages.ts'
import type { BenchResult, Grouped } from './report.ts'

const defaultSeed = 20_261_115
const accuracyAim = { corpus: 0.95, logs: 0.88 }

export async function benchGrouping({
  data,
  seed = defaultSeed,
  isQuick,
  log,
}: BenchOptions): Promise<BenchResult> {
  const generated = { name: `generated, seed ${seed}`, failures: createCorpus(seed) }
  const { corpora, logs } = data === undefined ? { corpora: [], logs: [] } : readGroupingData(data)
  const grouped: Grouped[] = []
  for (const corpus of [generated, ...corpora]) {
    log(`grouping the ${corpus.failures.length.toLocaleString('en-US')} failures of ${corpus.name}`)
    for (const rule of groupingRules) grouped.push(measure(corpus, rule, accuracyAim.corpus))
  }
  const means: Grouped[] = []
  for (const rule of groupingRules) {
    const ofLogs = logs.map((set) => measure(set, rule, null))
    grouped.push(...ofLogs)
    if (ofLogs.length > 0) means.push(toMean(rule.name, ofLogs))
  }
  log('grouping failures of which none is like another one')
  return {
    measured: [],
    grouped: [...grouped, ...means],
    notes: [
      describeUniqueMessages(isQuick ? 20_000 : 200_000),
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
