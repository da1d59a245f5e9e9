/**
 * Tenants cannot see each other. Every route is called as one tenant with the names and ids of the other one,
 * and with names and ids that do not exist: both answers are equal, and neither contains anything of the
 * other tenant. The requests are generated from the route list.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Route } from '../../src/api/http/route.ts'
import { routes } from '../../src/api/routes.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { startTenantApi, type Tenant, type TenantApi, tenants } from './tenants.ts'

/** The names and ids that a request can have. */
type Names = Readonly<{
  queue: string
  dead: string
  letter: string
  archived: string
  campaign: string
  group: number
  source: string
  alert: string
  rule: string
  namespace: string
}>

const unknown: Names = {
  queue: 'no-such-work',
  dead: 'no-such-dead',
  letter: '2hZr9S0aX1cVbNmLkJhGfDsAqWe',
  archived: '2hZr9S0aX1cVbNmLkJhGfDsAqWf',
  campaign: '2hZr9S0aX1cVbNmLkJhGfDsAqWg',
  group: 987_654,
  source: 'no-such-source',
  alert: 'no-such-alert',
  rule: 'no-such-rule',
  namespace: 'nowhere',
}

describe.each(['SQLite memory', 'PostgreSQL'] as const)('tenants (%s)', needsOf('PostgreSQL'), (store) => {
  let api: TenantApi
  let place: TestStore
  let storage: Storage
  const names = {} as Record<Tenant, Names>

  beforeAll(async () => {
    place = await createTestStore(store)
    storage = await place.open()
    const namespaces = tenants.map((name) => ({ name, description: '', keyTag: '', createdAt: 0 }))
    const { version } = await storage.readAccessState()
    const changes = namespaces.map((namespace) => ({ change: 'put-namespace', namespace }) as const)
    await storage.write([{ op: 'change-access', version, changes }])
    api = await startTenantApi(storage)
    for (const tenant of tenants) names[tenant] = await fill(tenant)
  })
  afterAll(async () => {
    await api?.stop()
    await place?.drop()
  })

  const call = async (caller: Tenant | 'admin', method: string, path: string, body?: unknown) => {
    const { status, text } = await api.send(caller, method, path, body)
    expect(status, `${method} ${path}: ${text}`).toBe(200)
    return JSON.parse(text)
  }

  async function fill(tenant: Tenant): Promise<Names> {
    const [queue, dead] = [`${tenant}-work`, `${tenant}-dead`]
    await call(tenant, 'POST', '/api/v1/queues', { name: dead, namespace: tenant })
    const policy = { dead_queue: dead, reference: `secret of ${tenant}` }
    await call(tenant, 'POST', '/api/v1/queues', { name: queue, namespace: tenant, policy })
    const letters = Array.from({ length: 4 }, (_, index) => ({
      original_topic: queue,
      original_partition: 0,
      original_offset: index,
      original_value: { text: `content of ${tenant}` },
      original_key: `content of ${tenant}`,
      headers: { authorization: `Bearer content of ${tenant}`, 'x-region': 'eu' },
      error_details: { exception_class: `${tenant}.Failure`, message: `secret of ${tenant}` },
      source_id: `${tenant}-source-${index}`,
    }))
    const captured = await call(tenant, 'POST', '/api/v1/letters', { queue: dead, letters })
    const ids = captured.letters.map(({ id }: { id: string }) => id)
    await call(tenant, 'POST', '/api/v1/letters/discard', { ids: [ids[1]], reason: `secret of ${tenant}` })
    const now = Date.now() * 1_000 + 60_000_000
    const states = ['discarded'] as const
    await storage.write([{ op: 'archive', queue: dead, states, endedBefore: now, countMax: 10, now }])
    const spec = {
      name: `secret of ${tenant}`,
      reason: 'test',
      action: 'discard',
      filter: { queue: dead },
      limit: 1,
    }
    const campaign = await call(tenant, 'POST', '/api/v1/campaigns', spec)
    expect(campaign.namespace).toBe(tenant)
    await api.work()
    const groups = await call(tenant, 'GET', '/api/v1/groups')
    await api.checkAlerts()
    const { alerts } = await call(tenant, 'GET', `/api/v1/alerts?queue=${dead}`)
    const rule = `${tenant}-rule`
    const condition = { type: 'letters', queues: [`secret of ${tenant}`] }
    await call(tenant, 'PUT', `/api/v1/alerts/rules/${rule}`, { namespace: tenant, condition })
    // A channel with the name of the rule.
    const settings = { url: `https://hooks.example.com/${tenant}-path` }
    const channel = { namespace: tenant, kind: 'slack', settings }
    await call(tenant, 'PUT', `/api/v1/alerts/channels/${rule}`, channel)
    const [letter = '', archived = ''] = [ids[3], ids[1]]
    return {
      queue,
      dead,
      letter,
      archived,
      campaign: campaign.id,
      group: groups.groups[0].id,
      source: `${tenant}-source-3`,
      alert: alerts[0].id,
      rule,
      namespace: tenant,
    }
  }

  it('lists and counts contain only what belongs to the tenant', async () => {
    const lists = routes.filter(
      ({ method, path, permission }) =>
        method === 'GET' && permission !== 'public' && !path.includes('{') && path.startsWith('/api/'),
    )
    expect(lists.length).toBeGreaterThan(8)
    for (const { path } of lists) {
      const { status, text } = await api.send('south', 'GET', path)
      // Kafka clusters and webhooks belong to the namespace of the system.
      const isOfSystem = path === '/api/v1/kafka' || path === '/api/v1/webhooks'
      expect(isOfSystem ? [403] : [200, 400], `${path}: ${text}`).toContain(status)
      expect(text, path).not.toMatch(/north/)
      if (/letters$|groups|queues|campaigns|archive|audit$|dlq$|findings$|alerts/.test(path))
        expect(text, path).toMatch(/south/)
    }
  })

  const guarded = routes.filter(({ permission }) => permission !== 'public')
  it.each(guarded.map((row) => [`${row.method} ${row.path}`, row] as const))(
    'another tenant gets the answer for a missing thing from %s',
    async (_, row) => {
      for (const variant of variants(row)) {
        const [theirs, missing] = await Promise.all(
          [names.north, unknown].map(async (named) => {
            const { path, body } = createRequest(row, named, names.south, variant)
            const answer = await api.send('south', row.method, path, body)
            expect(answer.status, `${path} ${JSON.stringify(body)} ${answer.text}`).not.toBe(500)
            return normalise(answer, named)
          }),
        )
        expect(theirs).toEqual(missing)
        expect(theirs?.text).not.toMatch(/secret of north|north-|north\.Failure/)
      }
    },
  )

  it.each(['south-viewer', 'admin-viewer'] as const)(
    'no route shows a payload, a key or a secret header to %s, who lacks payload.read',
    async (viewer) => {
      const mine = await api.send('south', 'GET', `/api/v1/letters/${names.south.letter}`)
      expect(mine.text).toContain('content of south')
      expect(mine.text).toContain('Bearer content of south')
      const reads = routes.filter(
        ({ method, path, permission }) =>
          permission !== 'public' && (method === 'GET' || /list|preview|info$/.test(path)),
      )
      for (const row of reads)
        for (const variant of variants(row)) {
          const { path, body } = createRequest(row, names.south, names.south, variant)
          const { text } = await api.send(viewer, row.method, path, body)
          expect(text, `${row.method} ${path}`).not.toMatch(/content of|Y29udGVudCBvZ/)
        }
      const { text } = await api.send(viewer, 'GET', `/api/v1/letters/${names.south.letter}`)
      expect(text).toContain('[redacted]')
      expect(text).toContain('"x-region"')
      expect(text).toContain('"eu"')
      const searches = [
        'payload_contains=content',
        'key_text=content',
        'header=x-region',
        'json=$.text%3D"x"',
      ]
      for (const search of searches) {
        const refused = await api.send(viewer, 'GET', `/api/v1/letters?${search}`)
        expect(refused.status, refused.text).toBe(403)
      }
      const spec = { action: 'discard', filter: { payload_contains: 'content' } }
      const created = await api.send(viewer, 'POST', '/api/v1/campaigns', { ...spec, name: 'x', reason: 'x' })
      expect(created.status, created.text).toBe(403)
      const previewed = await api.send(viewer, 'POST', '/api/v1/campaigns/preview', spec)
      expect(previewed.status, previewed.text).toBe(403)
    },
  )

  it('nothing of a tenant has changed after the calls of the other one', async () => {
    const queue = await call('north', 'GET', `/api/v1/queues/${names.north.queue}`)
    expect(queue.policy).toMatchObject({ dead_queue: names.north.dead, reference: 'secret of north' })
    expect(queue.counts).toMatchObject({ waiting: 0, accepted: 0, deleted: 0 })
    const dead = await call('north', 'GET', `/api/v1/queues/${names.north.dead}`)
    expect(dead.counts).toMatchObject({ waiting: 2, discarded: 1, archived: 1 })
    const { audit } = await call('north', 'GET', `/api/v1/letters/${names.north.letter}`)
    expect(audit).toEqual([])
  })

  it('letters and dead queues cannot cross namespaces without a permission in both', async () => {
    const sent = { ids: [names.south.letter], target: names.north.queue, include_dead: true }
    const redriven = await api.send('south', 'POST', '/api/v1/letters/redrive', sent)
    expect(redriven).toMatchObject({ status: 400, text: expect.stringContaining('does not exist') })
    const policy = { dead_queue: names.north.dead }
    const created = { name: 'south-other', namespace: 'south', policy }
    const refused = await api.send('south', 'POST', '/api/v1/queues', created)
    expect(refused).toMatchObject({ status: 400, text: expect.stringContaining('does not exist') })
    const elsewhere = await api.send('south', 'POST', '/api/v1/queues', { name: 'mine', namespace: 'north' })
    expect(elsewhere.status).toBe(403)
    await call('admin', 'POST', '/api/v1/queues', { ...created, name: 'crossing-dead', policy: {} })
    await call('admin', 'PATCH', `/api/v1/queues/${names.north.queue}`, {
      policy: { dead_queue: 'crossing-dead' },
    })
    await call('admin', 'PATCH', `/api/v1/queues/${names.north.queue}`, {
      policy: { dead_queue: names.north.dead },
    })
  })

  it('audit rows have the namespace of the changed object', async () => {
    const { entries } = await call('admin', 'GET', '/api/v1/audit?limit=500')
    const rows = entries as readonly {
      target: string
      namespace: string
      action: string
      key_prefix: string
    }[]
    for (const { target, namespace, action } of rows)
      if (target.startsWith('north') || target === names.north.archived || target === names.north.campaign)
        expect({ action, namespace }).toEqual({ action, namespace: 'north' })
    expect(rows.some(({ key_prefix }) => key_prefix === 'qtr-south')).toBe(true)
    const south = await call('south', 'GET', '/api/v1/audit?limit=500')
    expect(new Set(south.entries.map(({ namespace }: { namespace: string }) => namespace))).toEqual(
      new Set(['south']),
    )
  })
})

/** Requests by whom they name: a letter or an archived one, and a queue or a dead queue. */
const variants = (row: Route) =>
  /letter|queue|message|topic|items|dlq/i.test(row.path) ? (['live', 'other'] as const) : (['live'] as const)

function createRequest(
  row: Route,
  named: Names,
  own: Names,
  variant: 'live' | 'other',
): Readonly<{ path: string; body?: unknown }> {
  const isLive = variant === 'live'
  const queue = isLive ? named.queue : named.dead
  const letter = isLive ? named.letter : named.archived
  const isCampaign = row.path.includes('campaign')
  const isAlert = row.path.startsWith('/api/v1/alerts')
  const item = isAlert ? named.alert : letter
  const id = isCampaign ? named.campaign : row.path.includes('/groups') ? String(named.group) : item
  const name = isAlert ? named.rule : queue
  const parameters: Readonly<Record<string, string>> = { name, topic: queue, id }
  const path = row.path.replaceAll(/\{(\w+)\}/g, (_, field: string) => parameters[field] ?? id)
  const values: Readonly<Record<string, unknown>> = {
    queue_name: queue,
    queue: named.dead,
    ids: row.path.startsWith('/v1/') ? [letter] : [letter, own.letter].slice(0, 1),
    id: letter,
    campaign_id: named.campaign,
    group_id: named.group,
    filter: { queue: named.dead },
    topic: queue,
    target: null,
    dlqName: named.dead,
    dlq_name: named.dead,
    message_ids: [letter],
    reason: 'a test',
    name: 'a name',
    action: 'discard',
    items: row.path.endsWith('retry') ? [{ id: letter }] : [{ utf8: 'x' }],
    letters: [{ original_topic: 'x', original_value: 'x', error_details: { message: 'x' } }],
    request_timeout: '100ms',
    client_id: 'a-client',
    batch_size: 1,
    queue_flag: true,
    lease_timeout: '1m',
    expire_timeout: '1h',
    namespace: named.namespace,
    payload: { text: 'x' },
    policy: {},
    edit: { payload: { text: 'x' } },
    rate_per_second: 5,
  }
  if (row.method === 'GET' || row.method === 'DELETE') return { path }
  return { path, body: fillBody(row, values) }
}

/** The values of the fields that the body of the route has, as far as their names are known. */
function fillBody(row: Route, values: Readonly<Record<string, unknown>>): unknown {
  const fields = listFields(row.schema.body ?? row.openapi?.body, 0)
  const body = Object.fromEntries(Object.entries(values).filter(([name]) => fields.includes(name)))
  // Named letters and a filter exclude each other.
  if ('ids' in body && 'filter' in body) delete body.filter
  if (row.path === '/v1/queue.clear') body.queue = true
  return body
}

/** The names of the properties of a schema, in all of its alternatives. */
function listFields(schema: unknown, depth: number): readonly string[] {
  if (schema === null || typeof schema !== 'object' || depth > 6) return []
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key === 'properties') return Object.keys(value as object)
    const isAlternative = /^(anyOf|allOf|oneOf|\d+)$/.test(key)
    return isAlternative ? listFields(value, depth + 1) : []
  })
}

/** Replaces the names that the request had, so that answers can be compared. */
function normalise(answer: Readonly<{ status: number; text: string }>, named: Names) {
  let { text } = answer
  for (const [name, value] of Object.entries(named)) {
    if (typeof value === 'string') text = text.replaceAll(value, `<${name}>`)
    else text = text.replaceAll(new RegExp(`(group[^0-9]{1,20})${value}\\b`, 'g'), '$1<group>')
  }
  return { status: answer.status, text: text.replaceAll(varying, '') }
}

/** Fields that differ between two answers because of the time between them. */
const varying = /"(next_cursor|date|timestamp|read_at)":"[^"]*"|"current_rate_per_second":[\d.]+/g
