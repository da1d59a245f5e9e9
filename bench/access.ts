/**
 * The cost of checking a key, as a part of the CPU of a produce request. Both are measured in one process:
 * the check alone, and requests over HTTP with and without access control, on a store in memory, where a
 * request costs the least and so the check weighs the most. A request of a tenant is limited to a namespace.
 * The cost of audit rows is in access-audit.ts.
 */
import { Agent, request as sendRequest } from 'node:http'
import { createAccess } from '../server/src/access/create-access.ts'
import { prepareAccess } from '../server/src/access/first-start.ts'
import { readCredential } from '../server/src/api/http/access/credentials.ts'
import { readSettings } from '../server/src/config/settings/read-settings.ts'
import { settingsTable } from '../server/src/config/settings/settings.ts'
import { createEngine } from '../server/src/engine/create-engine.ts'
import { createLogger } from '../server/src/ops/log/log.ts'
import { startServer } from '../server/src/server.ts'
import { openStorage } from '../server/src/storage/open-storage.ts'
import { auditCallers, measureAudit } from './access-audit.ts'
import type { BenchOptions } from './arguments.ts'
import type { BenchResult, Measured } from './report.ts'

const aimPercent = 5
const connections = 32

export async function benchAccess({ rounds, isQuick, stores, log }: BenchOptions): Promise<BenchResult> {
  const [checks, requests, letters] = isQuick ? [200_000, 4_000, 1_000] : [1_000_000, 20_000, 5_000]
  const checkUs = await measureCheck(checks, rounds)
  log(`a check takes ${checkUs.toFixed(2)} µs`)
  const off = await measureRequests('off', requests, rounds)
  const keys = await measureRequests('keys', requests, rounds)
  const tenant = await measureRequests('tenant', requests, rounds)
  log('audit rows')
  const audit = await measureAudit({ stores, count: letters, rounds })
  const percent = (checkUs / off.usEach) * 100
  return {
    measured: [off.measured, keys.measured, tenant.measured, ...audit.measured],
    notes: [
      `checking a key: ${checkUs.toFixed(2)} µs`,
      `a produce request: ${off.usEach.toFixed(0)} µs of CPU without access control, client included, and ${keys.usEach.toFixed(0)} µs with it`,
      `the check is ${percent.toFixed(1)} % of the request (aim: less than ${aimPercent} %)`,
      `a produce request of a tenant, limited to its namespace: ${tenant.usEach.toFixed(0)} µs of CPU`,
      `redrives: ${auditCallers} callers, one letter in each transaction`,
      ...audit.notes,
    ],
  }
}

/** Returns the best time of a check in microseconds. */
async function measureCheck(checks: number, rounds: number): Promise<number> {
  const storage = await openStorage({ kind: 'memory' })
  const { clock } = storage
  const engine = createEngine(storage, { clock, isTicking: false })
  const key = await prepareAccess({ storage, engine, clock }, true)
  const access = createAccess({ storage, engine, clock, sessionMs: 1_000, failedAttemptsMax: 1 })
  const request = { headers: { authorization: `Bearer ${key}` } } as never
  await access.identify(readCredential(request), '127.0.0.1')
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now()
    for (let check = 0; check < checks; check++) access.identify(readCredential(request), '127.0.0.1')
    best = Math.min(best, ((performance.now() - startedAt) * 1_000) / checks)
  }
  await engine.close()
  await storage.close()
  return best
}

async function measureRequests(
  mode: 'off' | 'keys' | 'tenant',
  requests: number,
  rounds: number,
): Promise<Readonly<{ usEach: number; measured: Measured }>> {
  let key = ''
  const { settings } = readSettings(settingsTable, [])
  const server = await startServer({
    settings: { ...settings, port: 0, access: mode === 'off' ? 'off' : 'keys' },
    store: { kind: 'memory' },
    log: createLogger({ level: 'silent', isPretty: false, destination: { write: () => {} } }),
    onFirstKey: (created) => {
      key = created
    },
  })
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const call = (method: string, body: object): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = {
        'Content-Type': 'application/json',
        ...(key !== '' && { Authorization: `Bearer ${key}` }),
      }
      const request = sendRequest(
        `${server.url}/v1/${method}`,
        { method: 'POST', agent, headers },
        (answer) => {
          if (answer.statusCode !== 200) reject(new Error(`${method}: ${answer.statusCode}`))
          answer
            .setEncoding('utf8')
            .toArray()
            .then((parts) => resolve(JSON.parse(parts.join(''))), reject)
        },
      )
      request.on('error', reject).end(JSON.stringify(body))
    })
  if (mode === 'tenant') key = await createTenant(call)
  const queue = { queue_name: 'bench', lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
  await call('queues.create', { ...queue, ...(mode === 'tenant' && { namespace }) })
  const item = { queue_name: 'bench', request_timeout: '1m', items: [{ utf8: 'x'.repeat(200) }] }
  let best = { usEach: Number.POSITIVE_INFINITY, perSecond: 0 }
  for (let round = 0; round < rounds; round++) {
    const [startedAt, cpu] = [performance.now(), process.cpuUsage()]
    let left = requests
    await Promise.all(
      Array.from({ length: connections }, async () => {
        while (left-- > 0) await call('queue.produce', item)
      }),
    )
    const { user, system } = process.cpuUsage(cpu)
    const usEach = (user + system) / requests
    if (usEach < best.usEach)
      best = { usEach, perSecond: requests / ((performance.now() - startedAt) / 1_000) }
  }
  agent.destroy()
  await server.stop(0)
  const { perSecond } = best
  const facts = { batch: 1, callers: connections, p50Ms: null, p99Ms: null }
  return {
    usEach: best.usEach,
    measured: { subject: `access: ${mode}`, operation: 'produce', perSecond, ...facts },
  }
}

type Answer = Readonly<{ id?: string; key?: string }>
const namespace = 'shop'

/** Returns the key of a user who may act in one namespace only. */
async function createTenant(call: (method: string, body: object) => Promise<Answer>): Promise<string> {
  await call('namespaces.create', { name: namespace })
  const { id: user_id = '' } = await call('users.create', { username: 'tenant' })
  await call('rolebindings.create', { namespace, role_name: 'NamespaceOwner', user_id })
  const { key = '' } = await call('apikeys.create', { user_id, name: 'bench' })
  return key
}
