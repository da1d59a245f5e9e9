import { createLetterTotals } from '../../src/ops/metrics/letter-totals.ts'
import { createMetrics, type Metrics } from '../../src/ops/metrics/metrics.ts'
import { createPushMetrics } from '../../src/ops/metrics/push-metrics.ts'
import { createStoreTimes } from '../../src/ops/metrics/store-times.ts'

/** For tests of the HTTP layer: metrics that read nothing from a store. */
export function createTestMetrics(countConnections: () => number): Metrics {
  return createMetrics({
    version: '0.0.0-test',
    storeKind: 'memory',
    isStoreUp: () => true,
    readCounts: async () => [],
    readLetters: async () => ({ letters: [], classes: new Map(), campaigns: [], arrivals: [], oldest: [] }),
    letterTotals: createLetterTotals(),
    storeTimes: createStoreTimes(),
    pushes: createPushMetrics(),
    readDispatch: () => undefined,
    countConnections,
    readClockOffsetSeconds: () => null,
    getReconcileState: () => ({ at: null, differences: 0, differencesTotal: 0 }),
  })
}
