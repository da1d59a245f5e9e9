/**
 * The report of `/actuator/health`, from facts that are read without waiting. Only the store can make the
 * server DOWN: everything else makes it DEGRADED, because the rest of it works.
 */
import { type Instant, toDate } from '../../core/time/instant.ts'
import type { FindingRule } from '../../core/watching/findings.ts'
import { type GroupLagFact, judgeLag, type LagThreshold } from '../../core/watching/lag.ts'
import { type WorkerState, workerStates } from '../../core/watching/worker.ts'
import type { WatchReport } from '../watching/evaluate.ts'
import type { RedisState } from '../watching/watching.ts'
import type { Component } from './health.ts'

export const actuatorStatuses = ['UP', 'DEGRADED', 'DOWN'] as const
export type ActuatorStatus = (typeof actuatorStatuses)[number]

type Details = Readonly<Record<string, string | number | null>>
export type ActuatorPart = Readonly<{ status: ActuatorStatus; details?: Details }>
export type ActuatorComponent = ActuatorPart &
  Readonly<{ components?: Readonly<Record<string, ActuatorPart>> }>
export type ActuatorHealth = Readonly<{
  status: ActuatorStatus
  components: Readonly<Record<string, ActuatorComponent>>
}>

export type ActuatorFacts = Readonly<{
  store: Component
  storeKind: string
  /** Undefined: the store has no clock to compare with. */
  clock: Component | undefined
  clusters: readonly Readonly<{ cluster: string; isUp: boolean; reason: string | null; checkedAt: Instant }>[]
  lags: readonly GroupLagFact[]
  thresholds: readonly LagThreshold[]
  /** Null: workers and letters were not checked yet, and their components are missing. */
  report: WatchReport | null
  redis: RedisState
  /** Wrong counts in the last comparison. */
  countDrift: number
}>

export function readActuatorHealth(facts: ActuatorFacts): ActuatorHealth {
  const { store, clock, clusters, lags, report, redis, countDrift } = facts
  const storage: ActuatorComponent = {
    status: store.isUp ? 'UP' : 'DOWN',
    details: { kind: facts.storeKind, reason: store.reason, checked_at: store.checkedAt.toISOString() },
  }
  const others: Record<string, ActuatorComponent> = {
    ...(clock !== undefined && { clock: readClock(clock) }),
    ...(clusters.length > 0 && { kafka: readKafka(facts), lag: readLag(lags, facts.thresholds) }),
    ...(report !== null && { workers: readWorkers(report), dead_letters: readLetters(report) }),
    ...(redis.isConfigured && { redis: readRedis(redis) }),
    counts: { status: countDrift > 0 ? 'DEGRADED' : 'UP', details: { wrong_counts: countDrift } },
  }
  const isDegraded = Object.values(others).some(({ status }) => status !== 'UP')
  const status = storage.status === 'DOWN' ? 'DOWN' : isDegraded ? 'DEGRADED' : 'UP'
  return { status, components: { storage, ...others } }
}

function readClock({ isDegraded = false, reason }: Component): ActuatorComponent {
  return { status: isDegraded ? 'DEGRADED' : 'UP', details: { reason } }
}

function readKafka({ clusters }: ActuatorFacts): ActuatorComponent {
  const components = Object.fromEntries(
    clusters.map(({ cluster, isUp, reason, checkedAt }): [string, ActuatorPart] => [
      cluster,
      {
        status: isUp ? 'UP' : 'DOWN',
        details: { reason, checked_at: toDate(checkedAt).toISOString() },
      },
    ]),
  )
  return { status: clusters.every(({ isUp }) => isUp) ? 'UP' : 'DEGRADED', components }
}

/** Groups with a component of their own: those with the largest lag, after those above a limit. */
const groupsMax = 100

type GroupTotal = { lag: number; worst: (GroupLagFact & { limit: number; severity: string }) | null }

function readLag(lags: readonly GroupLagFact[], thresholds: readonly LagThreshold[]): ActuatorComponent {
  const groups = new Map<string, GroupTotal>()
  for (const each of lags) {
    const name = `${each.cluster}/${each.group}`
    const total = groups.get(name) ?? { lag: 0, worst: null }
    groups.set(name, total)
    total.lag += each.lag
    const judged = judgeLag(each, thresholds)
    const isWorst =
      judged !== null && each.lag - judged.limit > (total.worst?.lag ?? 0) - (total.worst?.limit ?? 0)
    if (isWorst) total.worst = { ...each, ...judged }
  }
  const isOver = ({ worst }: GroupTotal): number => (worst === null ? 1 : 0)
  const sorted = [...groups].toSorted(([, a], [, b]) => isOver(a) - isOver(b) || b.lag - a.lag)
  const above = sorted.filter(([, { worst }]) => worst !== null).length
  return {
    status: above > 0 ? 'DEGRADED' : 'UP',
    details: { groups: groups.size, groups_above_limit: above },
    components: Object.fromEntries(
      sorted.slice(0, groupsMax).map(([name, { lag, worst }]): [string, ActuatorPart] => [
        name,
        {
          status: worst === null ? 'UP' : 'DEGRADED',
          details: {
            lag,
            ...(worst !== null && { topic: worst.topic, limit: worst.limit, severity: worst.severity }),
          },
        },
      ]),
    ),
  }
}

/** An idle worker reports, and may have nothing to do, so it degrades nothing. */
const degradingRules: readonly FindingRule[] = [
  'worker-missing',
  'worker-stuck',
  'worker-draining',
  'worker-expected',
]

function readWorkers({ workerCounts, findingCounts, at }: WatchReport): ActuatorComponent {
  const countState = (state: WorkerState): number =>
    [...workerCounts.values()].reduce((sum, counts) => sum + counts[state], 0)
  const problems = degradingRules.flatMap((rule) => {
    const counts = findingCounts.get(rule)
    return counts === undefined
      ? []
      : [[rule.replaceAll('-', '_'), counts.WARNING + counts.CRITICAL] as const]
  })
  return {
    status: problems.length > 0 ? 'DEGRADED' : 'UP',
    details: {
      ...Object.fromEntries(workerStates.map((state) => [state.toLowerCase(), countState(state)])),
      ...Object.fromEntries(problems),
      checked_at: toDate(at).toISOString(),
    },
  }
}

/** Letters that are resolved or discarded need nobody. */
function readLetters({ letterCounts, at }: WatchReport): ActuatorComponent {
  const read = (state: 'waiting' | 'scheduled' | 'leased' | 'dead'): number => letterCounts.get(state) ?? 0
  const counts = {
    pending: read('waiting') + read('scheduled'),
    retrying: read('leased'),
    dead: read('dead'),
  }
  const isEmpty = counts.pending + counts.retrying + counts.dead === 0
  return { status: isEmpty ? 'UP' : 'DEGRADED', details: { ...counts, checked_at: toDate(at).toISOString() } }
}

function readRedis({ reason, unreadable, changedAt }: RedisState): ActuatorComponent {
  return {
    status: reason === null ? 'UP' : 'DOWN',
    details: { reason, unreadable, since: toDate(changedAt).toISOString() },
  }
}
