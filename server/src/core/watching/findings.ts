/**
 * Problems of workers and consumer groups. Pure functions of what the store has, so
 * that all servers on a store find the same.
 */
import type { Instant } from '../time/instant.ts'
import {
  type ObservationClock,
  readSilenceUs,
  readTick,
  readWorkerState,
  type Worker,
  type WorkerRules,
  type WorkerState,
} from './worker.ts'

export const findingRules = [
  'worker-missing',
  'worker-idle',
  'worker-stuck',
  'worker-draining',
  'worker-expected',
  'lag',
  'kafka-retention',
  'redis-down',
] as const
export type FindingRule = (typeof findingRules)[number]

export const severities = ['WARNING', 'CRITICAL'] as const
export type Severity = (typeof severities)[number]

/** The rule and the subject identify a finding. It exists as long as its condition holds. */
export type Finding = Readonly<{
  rule: FindingRule
  severity: Severity
  /** A worker `type/instance`, a worker type, `cluster/group/topic` of a lag, `cluster/topic`, or `redis`. */
  subject: string
  namespace: string
  /** When the condition became true. */
  since: Instant
  /** For people. */
  message: string
}>

/** `name` in the text of findings. */
export function nameWorker({ type, instanceId }: Pick<Worker, 'type' | 'instanceId'>): string {
  return `${type}/${instanceId}`
}

/**
 * At most one finding of a worker: the worst. A worker is judged as of its last heartbeat plus its silence,
 * so that nothing happens to it while nobody could have heard of it.
 */
export function findOfWorker(
  worker: Worker,
  clock: ObservationClock | undefined,
  rules: WorkerRules,
): Finding | null {
  const found = judge(worker, clock, rules)
  return found && { ...found, subject: nameWorker(worker), namespace: worker.namespace }
}

type Judgement = Omit<Finding, 'subject' | 'namespace'>

function judge(worker: Worker, clock: ObservationClock | undefined, rules: WorkerRules): Judgement | null {
  const state: WorkerState = readWorkerState(worker, clock, rules)
  const asOf = worker.lastSeenAt + readSilenceUs(worker, clock)
  if (state === 'STOPPED') return null
  if (state === 'MISSING') {
    return {
      rule: 'worker-missing',
      severity: 'CRITICAL',
      since: worker.lastSeenAt + rules.missingUs,
      message: `worker ${nameWorker(worker)} sent no heartbeat for longer than ${seconds(rules.missingUs)}`,
    }
  }
  if (state === 'DRAINING') {
    const since = worker.statusSince + rules.drainingUs
    if (asOf <= since) return null
    const message = `worker ${nameWorker(worker)} is shutting down for longer than ${seconds(rules.drainingUs)}`
    return { rule: 'worker-draining', severity: 'WARNING', since, message }
  }
  return judgeIdle(worker, rules, asOf)
}

function judgeIdle(worker: Worker, { idleUs }: WorkerRules, asOf: Instant): Judgement | null {
  if (worker.idleFrom === null) return null
  const since = worker.idleFrom + idleUs
  if (asOf <= since) return null
  const text = `worker ${nameWorker(worker)} processed no message for longer than ${seconds(idleUs)}`
  if ((worker.lag ?? 0) > 0) {
    const message = `${text}, although ${worker.lag} wait`
    return { rule: 'worker-stuck', severity: 'WARNING', since, message }
  }
  return { rule: 'worker-idle', severity: 'WARNING', since, message: `${text}` }
}

function seconds(us: number): string {
  return `${us / 1_000_000} s`
}

/** A type of workers that must have appeared, and how many of them. */
export type ExpectedWorkers = Readonly<{ type: string; countMin: number }>

/** The name of the clock that measures for how long a type has been expected. */
export function nameExpectation({ type }: Pick<ExpectedWorkers, 'type'>): string {
  return `expected:${type}`
}

/**
 * Types of which too few workers ever appeared. A worker that stopped cleanly has appeared, and a missing one
 * has a finding of its own, so both count until they are forgotten.
 */
export function findExpected(
  expected: readonly ExpectedWorkers[],
  counts: ReadonlyMap<string, number>,
  clocks: ReadonlyMap<string, ObservationClock>,
  { missingUs }: Pick<WorkerRules, 'missingUs'>,
): readonly Finding[] {
  return expected.flatMap(({ type, countMin }) => {
    const clock = clocks.get(nameExpectation({ type }))
    const count = counts.get(type) ?? 0
    if (clock === undefined || count >= countMin) return []
    const waitedUs = readTick(clock) - clock.startedAt
    if (waitedUs <= missingUs) return []
    const message = `${count} of ${countMin} expected workers of type ${type} appeared`
    const since = clock.startedAt + missingUs
    return [
      { rule: 'worker-expected', severity: 'WARNING', subject: type, namespace: '_system', since, message },
    ]
  })
}
