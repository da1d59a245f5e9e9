/** Evaluates the rules on the workers that the store has. */
import type { Instant } from '../../core/time/instant.ts'
import {
  type ExpectedWorkers,
  type Finding,
  type FindingRule,
  findExpected,
  findOfWorker,
  type Severity,
} from '../../core/watching/findings.ts'
import {
  isForgettable,
  type ObservationClock,
  readWorkerState,
  type Worker,
  type WorkerRules,
  type WorkerState,
} from '../../core/watching/worker.ts'
import type { ListedState } from '../../storage/contract/items.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { WatchRecords } from '../../storage/contract/workers.ts'
import { findingsMax } from './watching.ts'

export type WatchReport = Readonly<{
  at: Instant
  findings: readonly Finding[]
  /** Findings by rule and severity, also those that the list has no space for. */
  findingCounts: ReadonlyMap<FindingRule, FindingCounts>
  /** Workers by type and state. */
  workerCounts: ReadonlyMap<string, Readonly<Record<WorkerState, number>>>
  workerCount: number
  /** Workers that run or are missing, the missing ones first, at most `heartbeatsMax`. */
  heartbeats: readonly WorkerHeartbeatTime[]
  /** The oldest heartbeat of a type whose workers are not all in `heartbeats`. */
  otherHeartbeats: ReadonlyMap<string, Instant>
  records: WatchRecords
  /** Dead letters by state. */
  letterCounts: LetterStateCounts
  /** Wrong counts in the last comparison of a server with the rows. */
  countDrift: number
  /** Workers that can be forgotten. */
  forgettable: readonly Worker[]
}>

export type LetterStateCounts = ReadonlyMap<ListedState, number>
export type FindingCounts = Readonly<Record<Severity, number>>
export type WorkerHeartbeatTime = Readonly<{
  namespace: string
  type: string
  instanceId: string
  at: Instant
}>

export const heartbeatsMax = 500
const workersPerRead = 5_000
const forgottenPerPass = 1_000

export type WatchedStorage = Pick<StoreReads, 'listWorkers' | 'readWatchRecords' | 'countLetters'>

export type EvaluateParts = Readonly<{
  storage: WatchedStorage
  rules: WorkerRules
  expected: readonly ExpectedWorkers[]
  now: Instant
}>

export async function evaluate(parts: EvaluateParts): Promise<Omit<WatchReport, 'countDrift'>> {
  const { storage, rules, expected, now } = parts
  const records = await storage.readWatchRecords()
  const letters = await storage.countLetters({ filter: {}, by: ['state'] })
  const letterCounts = new Map(letters.map(({ state = 'waiting', count }) => [state, count]))
  const clocks = new Map(records.clocks.map((clock) => [clock.name, clock]))
  const sums = new Sums(clocks, rules)
  for (let after: Worker | undefined; ; ) {
    const query = { countMax: workersPerRead, ...(after !== undefined && { after }) }
    const workers = await storage.listWorkers(query)
    for (const worker of workers) sums.add(worker)
    after = workers.at(-1)
    if (workers.length < workersPerRead) break
  }
  for (const finding of findExpected(expected, sums.countTypes(), clocks, rules)) sums.find(finding)
  return { at: now, records, letterCounts, ...sums.report() }
}

const noWorkers: Readonly<Record<WorkerState, number>> = { RUNNING: 0, DRAINING: 0, STOPPED: 0, MISSING: 0 }

class Sums {
  readonly #clocks: ReadonlyMap<string, ObservationClock>
  readonly #rules: WorkerRules
  readonly #findings: Finding[] = []
  readonly #findingCounts = new Map<FindingRule, FindingCounts>()
  readonly #workerCounts = new Map<string, Record<WorkerState, number>>()
  readonly #missing: Worker[] = []
  readonly #present: Worker[] = []
  readonly #forgettable: Worker[] = []
  #workerCount = 0

  constructor(clocks: ReadonlyMap<string, ObservationClock>, rules: WorkerRules) {
    this.#clocks = clocks
    this.#rules = rules
  }

  add(worker: Worker): void {
    const clock = this.#clocks.get(worker.source)
    const state = readWorkerState(worker, clock, this.#rules)
    this.#workerCount++
    const counts = this.#workerCounts.get(worker.type) ?? { ...noWorkers }
    counts[state]++
    this.#workerCounts.set(worker.type, counts)
    if (state === 'MISSING') this.#missing.push(worker)
    else if (state === 'RUNNING') this.#present.push(worker)
    const isOver = isForgettable(worker, clock, this.#rules)
    if (isOver && this.#forgettable.length < forgottenPerPass) this.#forgettable.push(worker)
    const finding = findOfWorker(worker, clock, this.#rules)
    if (finding !== null) this.find(finding)
  }

  find(finding: Finding): void {
    countFinding(this.#findingCounts, finding)
    this.#findings.push(finding)
  }

  countTypes(): ReadonlyMap<string, number> {
    return new Map(
      [...this.#workerCounts].map(([type, counts]) => [
        type,
        Object.values(counts).reduce((sum, count) => sum + count, 0),
      ]),
    )
  }

  report(): Omit<WatchReport, 'at' | 'records' | 'letterCounts' | 'countDrift'> {
    const watched = [...this.#missing, ...this.#present]
    const others = new Map<string, Instant>()
    for (const { type, lastSeenAt } of watched.slice(heartbeatsMax))
      others.set(type, Math.min(others.get(type) ?? lastSeenAt, lastSeenAt))
    return {
      findings: sortFindings(this.#findings).slice(0, findingsMax),
      findingCounts: this.#findingCounts,
      workerCounts: this.#workerCounts,
      workerCount: this.#workerCount,
      heartbeats: watched.slice(0, heartbeatsMax).map(({ namespace, type, instanceId, lastSeenAt }) => ({
        namespace,
        type,
        instanceId,
        at: lastSeenAt,
      })),
      otherHeartbeats: others,
      forgettable: this.#forgettable,
    }
  }
}

export function countFinding(
  counts: Map<FindingRule, FindingCounts>,
  { rule, severity }: Pick<Finding, 'rule' | 'severity'>,
): void {
  const before = counts.get(rule) ?? { WARNING: 0, CRITICAL: 0 }
  counts.set(rule, { ...before, [severity]: before[severity] + 1 })
}

/** The worst first, then the oldest; a fixed order for all servers. */
export function sortFindings(findings: readonly Finding[]): Finding[] {
  return findings.toSorted(
    (a, b) =>
      (a.severity === b.severity ? 0 : a.severity === 'CRITICAL' ? -1 : 1) ||
      a.since - b.since ||
      compare(a.rule, b.rule) ||
      compare(a.namespace, b.namespace) ||
      compare(a.subject, b.subject),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
