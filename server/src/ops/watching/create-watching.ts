import type { Clock, Instant } from '../../core/time/instant.ts'
import {
  type ExpectedWorkers,
  type Finding,
  nameExpectation,
  type Severity,
} from '../../core/watching/findings.ts'
import { findLags, type GroupLagFact, type LagThreshold } from '../../core/watching/lag.ts'
import { findLosingTopics, type LosingTopicFact } from '../../core/watching/retention.ts'
import type { Heartbeat, WorkerRules } from '../../core/watching/worker.ts'
import type { Engine } from '../../engine/engine.ts'
import { keyOfWorker } from '../../storage/shared/rows/worker-rows.ts'
import type { Logger } from '../log/log.ts'
import { comparisonsTotal, createCountDrift, driftTotal } from './count-drift.ts'
import { countFinding, evaluate, sortFindings, type WatchedStorage, type WatchReport } from './evaluate.ts'
import { createEventTotals } from './event-totals.ts'
import { createHeartbeatBuffer } from './heartbeats/heartbeat-buffer.ts'
import type { RedisObserver } from './heartbeats/redis-observer.ts'
import { findingsMax, type Watching } from './watching.ts'

export type WatchingParts = Readonly<{
  storage: () => WatchedStorage
  engine: () => Pick<Engine, 'write'>
  clock: Clock
  rules: WorkerRules
  expected: readonly ExpectedWorkers[]
  thresholds: readonly LagThreshold[]
  /** The newest lag of all consumer groups, read without waiting. */
  listLags: () => readonly GroupLagFact[]
  /** The dead-letter topics whose unread records Kafka removes soon, read without waiting. */
  listLosingTopics: () => readonly LosingTopicFact[]
  redis: RedisObserver
  workersMax: number
  /** The server only evaluates the rules: other servers write the heartbeats. */
  isReadOnly?: boolean
  log: Logger
}>

/** So that a batch does not hold up the other writes of the store. */
const heartbeatsPerWrite = 1_000

export function createWatching(parts: WatchingParts): Watching {
  const { clock, rules, expected, redis, workersMax } = parts
  let report: WatchReport | null = null
  const totals = createEventTotals()
  const lagFindings = createLagFindings(parts)
  const countDrift = createCountDrift()
  const observed = ['http', ...expected.map(nameExpectation)]

  const record = createRecord(parts)
  const buffer = createHeartbeatBuffer((heartbeats) => record(heartbeats, ['http']), workersMax)
  const writeTotals = async (): Promise<void> => {
    const taken = totals.take()
    if (taken.length === 0) return
    try {
      await parts.engine().write([{ op: 'add-event-totals', totals: taken }])
    } catch (error) {
      totals.restore(taken)
      throw error
    }
  }
  const recordRedis = createRedisRecord(parts, record)
  const forget = async ({ forgettable }: WatchReport): Promise<void> => {
    if (forgettable.length > 0) await parts.engine().write([{ op: 'forget-workers', workers: forgettable }])
  }
  const read = async (): Promise<WatchReport> => {
    const now = clock.now()
    const found = await evaluate({ storage: parts.storage(), rules, expected, now })
    return lagFindings.addTo({ ...found, countDrift: countDrift.read(found.records.totals) }, redis, now)
  }
  return {
    rules,
    receive: async (heartbeats) => {
      const receivedAt = clock.now()
      const received = heartbeats.map((each) => ({ ...each, source: 'http' as const, receivedAt }))
      return { refused: await buffer.add(received) }
    },
    count: totals.count,
    countComparison: (differences) => {
      totals.add({ name: comparisonsTotal, label: '', count: 1 })
      if (differences > 0) totals.add({ name: driftTotal, label: '', count: differences })
    },
    pass: async () => {
      if (parts.isReadOnly === true) {
        report = await read()
        return
      }
      await buffer.flush()
      await recordRedis()
      await record([], observed)
      await writeTotals()
      const found = await read()
      await forget(found)
      report = found
    },
    readFindings: async () => (report ?? (await read())).findings,
    peekReport: () => report,
    redis: redis.state,
    close: async () => {
      await Promise.allSettled([buffer.flush(), writeTotals()])
      await redis.close()
    },
  }
}

/** Writes heartbeats and the clocks of what was observed. */
function createRecord({ engine, clock, workersMax, log }: WatchingParts) {
  let refusedBefore = 0
  const warnOfRefused = (count: number): void => {
    if (count > 0 && refusedBefore === 0)
      log.warn(
        { workers_max: workersMax },
        'THERE ARE MORE WORKERS THAN workers.count_max: some are not watched',
      )
    refusedBefore = count
  }
  return async (heartbeats: readonly Heartbeat[], observed: readonly string[]) => {
    const command = { op: 'record-heartbeats', heartbeats, observed, now: clock.now(), workersMax } as const
    const [result] = await engine().write([command])
    warnOfRefused(result.refused.length)
    return result
  }
}

/**
 * Writes the heartbeats in Redis that this server has not written yet. Redis is read more often than workers
 * replace their keys, so at least half of them are known.
 */
function createRedisRecord({ redis }: WatchingParts, record: ReturnType<typeof createRecord>) {
  let written: ReadonlyMap<string, string> = new Map()
  return async (): Promise<void> => {
    const heartbeats = await redis.pass()
    const before = written
    // After a write that fails, and after another server has read, all are written.
    written = new Map()
    if (heartbeats === null) return
    const described = heartbeats.map((each) => [keyOfWorker(each), `${each.sentAt} ${each.status}`] as const)
    const fresh = heartbeats.filter((_, at) => {
      const [key, content] = described[at] ?? []
      return key === undefined || before.get(key) !== content
    })
    for (let at = 0; at < fresh.length; at += heartbeatsPerWrite)
      await record(fresh.slice(at, at + heartbeatsPerWrite), [])
    await record([], ['redis'])
    written = new Map(described)
  }
}

/** Adds the findings that do not come from the store: those of Kafka, and Redis. */
function createLagFindings({ thresholds, listLags, listLosingTopics }: WatchingParts) {
  let since = new Map<string, Instant>()
  return {
    addTo: (report: WatchReport, redis: RedisObserver, now: Instant): WatchReport => {
      const seen = new Map<string, Instant>()
      const sinceOf = (subject: string, severity: Severity): Instant => {
        const key = `${subject}\n${severity}`
        const at = since.get(key) ?? now
        seen.set(key, at)
        return at
      }
      const lags = findLags(listLags(), thresholds, sinceOf)
      const losing = findLosingTopics(listLosingTopics(), sinceOf)
      since = seen
      const { reason, changedAt } = redis.state()
      const down: Finding[] =
        reason === null
          ? []
          : [
              {
                rule: 'redis-down',
                severity: 'WARNING',
                subject: 'redis',
                namespace: '_system',
                since: changedAt,
                message: `${reason}; workers that report through Redis are not watched`,
              },
            ]
      const added = [...lags, ...losing, ...down]
      if (added.length === 0) return report
      const findingCounts = new Map(report.findingCounts)
      for (const finding of added) countFinding(findingCounts, finding)
      const findings = sortFindings([...report.findings, ...added]).slice(0, findingsMax)
      return { ...report, findings, findingCounts }
    },
  }
}
