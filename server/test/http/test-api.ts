import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { type ApiParts, createApi } from '../../src/api/create-api.ts'
import type { Drain } from '../../src/api/http/connections/drain.ts'
import { toHttpLimits } from '../../src/api/http/connections/http-limits.ts'
import { KnownError } from '../../src/errors.ts'
import { noAlerts } from './no-alerts.ts'
import { noNotifier } from './no-notifier.ts'
import { noWatching } from './no-watching.ts'
import { createTestMetrics } from './test-metrics.ts'
import { createReadableLog, type LogLine, testSettings } from './test-server.ts'

export type TestApi = Readonly<{ url: string; port: number; drain: Drain; lines: LogLine[] }>

const cleanups: (() => Promise<unknown>)[] = []

/**
 * Starts the HTTP layer without a store, for tests that pass their own routes and limits. Stopped after the
 * test.
 */
export async function startTestApi(over: Partial<ApiParts> = {}): Promise<TestApi> {
  const { stop, ...api } = await startApi(over)
  cleanups.push(stop)
  return api
}

/** Starts the HTTP layer without a store once for all tests of a file or `describe`. */
export function shareTestApi(): Pick<TestApi, 'url' | 'port'> {
  let shared: Awaited<ReturnType<typeof startApi>>
  beforeAll(async () => {
    shared = await startApi()
  })
  afterAll(() => shared.stop())
  return {
    get url() {
      return shared.url
    },
    get port() {
      return shared.port
    },
  }
}

async function startApi(over: Partial<ApiParts> = {}): Promise<TestApi & { stop(): Promise<void> }> {
  const { log, lines } = createReadableLog()
  const { app, drain } = await createApi({
    version: '0.0.0-test',
    clock: { now: () => Date.now() * 1_000 },
    startedAt: new Date(),
    limits: toHttpLimits(testSettings()),
    storeKind: 'memory',
    kafka: { clusters: [], health: () => [], listFigures: () => [], listReaders: async () => [] },
    storage: () => {
      throw new KnownError('STORE_UNAVAILABLE', 'this server has no store')
    },
    engine: () => {
      throw new KnownError('STORE_UNAVAILABLE', 'this server has no store')
    },
    letters: () => {
      throw new KnownError('STORE_UNAVAILABLE', 'this server has no store')
    },
    webhooks: () => {
      throw new KnownError('STORE_UNAVAILABLE', 'this server has no store')
    },
    access: () => {
      throw new KnownError('STORE_UNAVAILABLE', 'this server has no store')
    },
    watching: noWatching,
    notifier: noNotifier,
    alerts: noAlerts,
    readActuator: () => ({ status: 'UP', components: {} }),
    health: () => ({ status: 'pass', version: '0.0.0-test', checks: {} }),
    createMetrics: createTestMetrics,
    isLocalOnly: true,
    log,
    ...over,
  })
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
  const stop = async (): Promise<void> => {
    await drain.stop(0)
    await app.close()
  }
  const { port } = app.server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, drain, lines, stop }
}

afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()))
})
