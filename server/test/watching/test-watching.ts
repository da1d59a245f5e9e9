import { pino } from 'pino'
import type { Instant } from '../../src/core/time/instant.ts'
import type { ExpectedWorkers } from '../../src/core/watching/findings.ts'
import type { GroupLagFact, LagThreshold } from '../../src/core/watching/lag.ts'
import { createWatching } from '../../src/ops/watching/create-watching.ts'
import { noRedis, type RedisObserver } from '../../src/ops/watching/heartbeats/redis-observer.ts'
import type { NewHeartbeat, Watching } from '../../src/ops/watching/watching.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'

export const second = 1_000_000
export const minute = 60 * second

export const testRules = {
  missingUs: minute,
  idleUs: 5 * minute,
  drainingUs: 2 * minute,
  forgetUs: 60 * minute,
}

export type TestClock = { at: Instant; now(): Instant }

export type TestWatchingOptions = Readonly<{
  expected?: readonly ExpectedWorkers[]
  thresholds?: readonly LagThreshold[]
  lags?: () => readonly GroupLagFact[]
  redis?: RedisObserver
  workersMax?: number
}>

/** A watch whose passes and clock the test controls. */
export function createTestWatching(
  storage: Storage,
  clock: TestClock,
  options: TestWatchingOptions = {},
): Watching {
  return createWatching({
    storage: () => storage,
    engine: () => storage,
    clock,
    rules: testRules,
    expected: options.expected ?? [],
    thresholds: options.thresholds ?? [],
    listLags: options.lags ?? (() => []),
    listLosingTopics: () => [],
    redis: options.redis ?? noRedis,
    workersMax: options.workersMax ?? 100_000,
    log: pino({ level: 'silent' }),
  })
}

export function aHeartbeat(changes: Partial<NewHeartbeat> = {}): NewHeartbeat {
  return {
    namespace: '_system',
    type: 'payout',
    instanceId: 'payout-1',
    status: 'RUNNING',
    sentAt: null,
    lag: null,
    ...changes,
  }
}
