/** An API on a store with two tenants, and callers who may act in one namespace each. */
import type { AddressInfo } from 'node:net'
import { createAccess } from '../../src/access/create-access.ts'
import type { ApiContext } from '../../src/api/context.ts'
import { createApi } from '../../src/api/create-api.ts'
import { createCaller } from '../../src/api/http/caller.ts'
import { toHttpLimits } from '../../src/api/http/connections/http-limits.ts'
import type { Authorize } from '../../src/api/http/permission.ts'
import { toDeliveryRules, toDispatchRules } from '../../src/config/delivery-rules.ts'
import type { Identity } from '../../src/core/access/identity.ts'
import { grantablePermissions } from '../../src/core/access/permissions.ts'
import { systemNamespace } from '../../src/core/items/queue.ts'
import type { Clock } from '../../src/core/time/instant.ts'
import type { Finding } from '../../src/core/watching/findings.ts'
import { createChannels } from '../../src/drivers/notify/channels.ts'
import { createWebhooks, type Webhooks } from '../../src/drivers/webhook/webhooks.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { KnownError } from '../../src/errors.ts'
import { createLetters } from '../../src/letters/create-letters.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { createTestAlerts } from '../alerts/test-alerts.ts'
import { noNotifier } from '../http/no-notifier.ts'
import { noWatching } from '../http/no-watching.ts'
import { createTestMetrics } from '../http/test-metrics.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'

export const tenants = ['north', 'south'] as const
export type Tenant = (typeof tenants)[number]

/** `admin`: all namespaces. A viewer has all permissions but those that show payloads. */
const authorize: Authorize = (permission, request) => {
  const name = String(request.headers['x-test-tenant'] ?? 'admin')
  const isViewer = name.endsWith('-viewer')
  const hidden: readonly string[] = isViewer ? ['payload.read', 'queue.lease'] : []
  const permissions = new Set(grantablePermissions.filter((each) => !hidden.includes(each)))
  const tenant = name.replace('-viewer', '')
  const namespace = tenant === 'admin' ? systemNamespace : tenant
  const identity: Identity = {
    userId: name,
    name,
    keyPrefix: `qtr-${name}`,
    grants: [{ namespace, permissions }],
    scope: null,
  }
  const caller = createCaller(identity, request)
  if (permission === 'public' || caller.maySomewhere(permission)) return caller
  throw new KnownError('ACCESS_DENIED', `user ${name} lacks the permission ${permission}`)
}

export type TenantApi = Readonly<{
  url: string
  work(): Promise<void>
  send(
    caller: Tenant | 'admin' | 'south-viewer' | 'admin-viewer',
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Readonly<{ status: number; text: string }>>
  /** Evaluates the rules of alerts. */
  checkAlerts(): Promise<void>
  stop(): Promise<void>
}>

const noKafka = { clusters: [], health: () => [], listFigures: () => [], listReaders: async () => [] }

export async function startTenantApi(storage: Storage): Promise<TenantApi> {
  const { log, lines } = createReadableLog()
  const { clock } = storage
  const engine = createEngine(storage, { clock, isTicking: false })
  const letters = createLetters({ storage, engine, clock })
  const access = createAccess({ storage, engine, clock, sessionMs: 60_000, failedAttemptsMax: 100 })
  const webhooks = createTestWebhooks(storage, engine)
  const alerts = createTestAlerts(storage, engine, { clock })
  const { app, drain } = await createApi({
    version: '0.0.0-test',
    clock,
    startedAt: new Date(),
    limits: toHttpLimits(testSettings()),
    storeKind: 'memory',
    ...createTestNotifier(storage, engine),
    letters: () => letters,
    access: () => access,
    webhooks: () => webhooks,
    kafka: noKafka,
    alerts,
    watching: createTestWatching(engine, clock),
    readActuator: () => ({ status: 'UP', components: {} }),
    health: () => ({ status: 'pass', version: '0.0.0-test', checks: {} }),
    createMetrics: createTestMetrics,
    isLocalOnly: true,
    authorize,
    log,
  })
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  return {
    url,
    work: async () => {
      for (let pass = 0; pass < 20; pass++) if (!(await letters.passes.campaigns())) return
    },
    send: async (caller, method, path, body) => {
      const response = await fetch(url + path, {
        method,
        headers: {
          'x-test-tenant': caller,
          'x-request-id': 'fixed',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(20_000),
      })
      const text = await response.text()
      if (response.status === 500) throw new Error(JSON.stringify(lines.slice(-3)))
      return { status: response.status, text }
    },
    checkAlerts: alerts.pass,
    stop: async () => {
      await drain.stop(0)
      await app.close()
      await engine.close()
      await letters.close()
    },
  }
}

function createTestNotifier(
  storage: Storage,
  engine: Engine,
): Pick<ApiContext, 'storage' | 'engine' | 'notifier'> {
  const parts = { storage: () => storage, engine: () => engine }
  const readSecret = async (secret: string): Promise<string> => secret
  const channels = createChannels<string>({ configured: [], readSecret, ...parts, clock: storage.clock })
  return { ...parts, notifier: { ...noNotifier, channels } }
}

/** Records heartbeats; each tenant has a finding. */
function createTestWatching(engine: Engine, clock: Clock): ApiContext['watching'] {
  return {
    ...noWatching,
    receive: async (sent) => {
      const now = clock.now()
      const heartbeats = sent.map((each) => ({ ...each, source: 'http' as const, receivedAt: now }))
      const observed = ['http']
      await engine.write([{ op: 'record-heartbeats', heartbeats, observed, now, workersMax: 1_000 }])
      return { refused: [] }
    },
    readFindings: async () => tenants.map(createFinding),
  }
}

function createFinding(namespace: Tenant): Finding {
  const subject = `${namespace}-worker/one`
  const message = `secret of ${namespace}`
  return { rule: 'worker-missing', severity: 'CRITICAL', subject, namespace, since: 0, message }
}

function createTestWebhooks(storage: Storage, engine: Engine): Webhooks {
  return createWebhooks({
    storage: () => storage,
    engine: () => engine,
    clock: storage.clock,
    deliveryRules: toDeliveryRules(testSettings()),
    dispatchRules: toDispatchRules(testSettings()),
    addresses: { isLoopbackAllowed: true, allowed: [] },
    onAttempt: () => {},
    onError: (error) => {
      throw error
    },
  })
}
