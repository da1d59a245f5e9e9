/** Every route that changes something an operator owns writes its audit row in the same transaction. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isReadPermission } from '../../src/api/http/permission.ts'
import { routes } from '../../src/api/routes.ts'
import { overlay } from '../../src/core/overlay.ts'
import type { Command, Storage } from '../../src/storage/contract/storage.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { type Scenario, type ScenarioTools, scenarios, withoutAudit } from './audit-scenarios.ts'
import { startTenantApi, type TenantApi } from './tenants.ts'

/**
 * Routes that need a delivery that fails, or a broker: server/test/webhook-api/jobs.test.ts and
 * server/test/kafka/internal-api.test.ts call them.
 */
const testedElsewhere: Readonly<Record<string, true>> = {
  'DELETE /internal/v1/dlq/{topic}/{offset}': true,
  'POST /channel/{channelId}/consumer/{consumerId}/dlq': true,
  'DELETE /channel/{channelId}/consumer/{consumerId}/dlq': true,
  'POST /channel/{channelId}/consumer/{consumerId}/job/{jobId}/requeue-dead-job': true,
  'DELETE /channel/{channelId}/consumer/{consumerId}/job/{jobId}': true,
}

type AuditEntry = Readonly<{ id: number; action: string; target: string }>

describe('audit rows', () => {
  let storage: Storage
  let api: TenantApi
  /** The commands of each write, in order. */
  const writes: (readonly Command[])[] = []
  let isFailing = false
  let names = 0

  beforeAll(async () => {
    const store = await openStorage({ kind: 'memory' })
    storage = overlay(store, {
      write: async (commands) => {
        writes.push(commands)
        if (isFailing) throw new Error('the store failed')
        return store.write(commands)
      },
    } as Partial<Storage>)
    const { version } = await store.readAccessState()
    const namespace = { name: '_system', description: '', keyTag: '', createdAt: 0 }
    await store.write([{ op: 'change-access', version, changes: [{ change: 'put-namespace', namespace }] }])
    api = await startTenantApi(storage)
  })
  afterAll(async () => {
    await api?.stop()
    await storage?.close()
  })

  const send = async (
    method: string,
    path: string,
    body?: object,
    form?: Record<string, string>,
    more = {},
  ) => {
    const type = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
    const sent = form === undefined ? body && JSON.stringify(body) : new URLSearchParams(form).toString()
    const response = await fetch(api.url + path, {
      method,
      headers: {
        'x-test-tenant': 'admin',
        'x-request-id': `request-${names}`,
        ...(sent !== undefined && { 'content-type': type }),
        ...more,
      },
      ...(sent !== undefined && { body: sent }),
    })
    const text = await response.text()
    return { status: response.status, text }
  }
  const expectSuccess = async (...args: Parameters<typeof send>) => {
    const { status, text } = await send(...args)
    expect(status, `${args[0]} ${args[1]} ${JSON.stringify(args[2] ?? args[3])}: ${text}`).toBeLessThan(300)
    return text.startsWith('{') ? JSON.parse(text) : {}
  }
  const name = (prefix: string) => `${prefix}-${++names}`
  const tools: ScenarioTools = {
    name,
    call: (method, path, body) => expectSuccess(method, path, body),
    form: (method, path, fields, headers) => expectSuccess(method, path, undefined, fields, headers),
    queue: async (more = {}) => {
      const spec = { name: name('queue'), ...more }
      const { status, text } = await send('POST', '/api/v1/queues', spec)
      expect([200, 409], text).toContain(status)
      return spec.name
    },
    letters: async (count) => {
      const dead = await tools.queue()
      const letters = Array.from({ length: count }, (_, offset) => ({
        original_topic: 'orders',
        original_partition: 0,
        original_offset: offset,
        original_value: 'x',
        error_details: { exception_class: `Failure${names}x${offset}`, message: `failure ${dead} ${offset}` },
      }))
      const captured = await tools.call('POST', '/api/v1/letters', { queue: dead, letters })
      return { dead, ids: captured.letters.map(({ id }: { id: string }) => id) }
    },
    alert: async () => {
      const { dead } = await tools.letters(1)
      await api.checkAlerts()
      return (await tools.call('GET', `/api/v1/alerts?queue=${dead}`)).alerts[0].id
    },
    readLastModified: async (path) => {
      const response = await fetch(api.url + path, { headers: { 'x-test-tenant': 'admin' } })
      await response.body?.cancel()
      return response.headers.get('last-modified') ?? ''
    },
  }
  const readRows = async (): Promise<readonly AuditEntry[]> =>
    (await tools.call('GET', '/api/v1/audit?limit=500')).entries
  const run = async ({ route, reason, prepare }: Scenario) => {
    const { path, body, form, headers } = await prepare(tools)
    const [method = ''] = route.split(' ')
    names++
    writes.length = 0
    const sent = reason === undefined || body === undefined ? body : { ...body, reason }
    return () => send(method, path, sent, form, headers)
  }

  it('every changing route has a scenario, or a reason why it writes no row', () => {
    const changing = routes
      .filter(({ method, permission }) => method !== 'GET' && !isReadPermission(permission))
      .map(({ method, path }) => `${method} ${path}`)
    const known = new Set([
      ...scenarios.map(({ route }) => route),
      ...Object.keys(withoutAudit),
      ...Object.keys(testedElsewhere),
    ])
    expect(changing.filter((route) => !known.has(route) && !/preview$/.test(route))).toEqual([])
    expect([...known].filter((route) => !changing.includes(route))).toEqual([])
  })

  it.each(scenarios.map((scenario) => [scenario.route, scenario] as const))(
    '%s writes a complete audit row in the transaction of the change',
    async (_, scenario) => {
      const call = await run(scenario)
      const before = (await readRows())[0]?.id ?? 0
      const { status, text } = await call()
      expect(status, text).toBeLessThan(300)
      const rows = (await readRows()).filter(({ id }) => id > before)
      const row = rows.find(({ action }) => action === scenario.action)
      expect(row, JSON.stringify(rows)).toMatchObject({
        actor: 'admin',
        key_prefix: 'qtr-admin',
        address: '127.0.0.1',
        request_id: `request-${names}`,
        namespace: scenario.action === 'namespace.set-quota' ? row?.target : '_system',
        outcome: 'done',
        target: expect.stringMatching(/./),
        ...(scenario.reason !== undefined && { reason: scenario.reason }),
      })
      const audited = writes.filter((commands) => commands.some(hasAudit))
      expect(audited.length).toBeGreaterThan(0)
      // A row in a write of its own could be lost, or stay without its change.
      for (const commands of audited) expect(commands.some(isChange), JSON.stringify(commands)).toBe(true)
    },
  )

  it.each(scenarios.map((scenario) => [scenario.route, scenario] as const))(
    '%s leaves no row if its transaction fails',
    async (_, scenario) => {
      const call = await run(scenario)
      const before = await readRows()
      isFailing = true
      try {
        expect((await call()).status).toBeGreaterThanOrEqual(500)
      } finally {
        isFailing = false
      }
      expect(await readRows()).toEqual(before)
    },
  )
})

function hasAudit(command: Command): boolean {
  return command.op === 'audit' || ('audit' in command && command.audit !== undefined)
}

function isChange(command: Command): boolean {
  return command.op !== 'audit'
}
