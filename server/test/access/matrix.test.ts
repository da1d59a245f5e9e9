/** Every route, called with every kind of credential. The list of cases is the table of routes. */
import { beforeAll, expect, it } from 'vitest'
import type { Route } from '../../src/api/http/route.ts'
import { routes } from '../../src/api/routes.ts'
import { isSystemPermission } from '../../src/core/access/permissions.ts'
import { standardRoles } from '../../src/core/access/standard-roles.ts'
import { bearer, describeKeysServer } from './keys-server.ts'

const guarded = routes.filter(({ permission }) => permission !== 'public')
const unlimited = { 'auth.failed_attempts_max': 100_000 }

/** `denied`: the caller is known and lacks the permission. `passed`: the request was admitted. */
type Outcome = 'missing' | 'refused' | 'denied' | 'passed'

/** The status of each outcome in a dialect. The Queue API has its own codes. */
type Kind = 'queue' | 'internal' | 'other'
const statuses: Readonly<Record<Exclude<Outcome, 'passed'>, Readonly<Record<Kind, number>>>> = {
  missing: { queue: 403, internal: 401, other: 401 },
  refused: { queue: 401, internal: 401, other: 403 },
  denied: { queue: 403, internal: 403, other: 403 },
}
const kinds: Readonly<Record<string, Kind>> = { 'queue-api': 'queue', internal: 'internal' }

describeKeysServer('the matrix of routes and credentials', 'SQLite memory', unlimited, (server) => {
  const send = async (row: Route, headers: Record<string, string>): Promise<number> => {
    const path = row.path.replaceAll(/\{\w+\}/g, 'x')
    const hasBody = row.method !== 'GET'
    const response = await fetch(server.url + path, {
      method: row.method,
      // No such field: a request that is admitted fails when its body is read, so it changes nothing.
      headers: { ...headers, ...(hasBody && { 'content-type': 'application/json' }) },
      ...(hasBody && { body: '{"no_such_field": 1}' }),
      signal: AbortSignal.timeout(10_000),
    })
    await response.body?.cancel()
    return response.status
  }
  const expectAll = async (
    headers: Record<string, string>,
    toOutcome: (row: Route) => Outcome,
  ): Promise<void> => {
    const found: string[] = []
    const expected: string[] = []
    for (const row of guarded) {
      const status = await send(row, headers)
      const outcome = toOutcome(row)
      const kind = kinds[row.dialect.name] ?? 'other'
      const isRefusal = status === 401 || status === 403
      found.push(`${row.method} ${row.path}: ${isRefusal ? status : 'passed'}`)
      const wanted = outcome === 'passed' ? outcome : statuses[outcome][kind]
      expected.push(`${row.method} ${row.path}: ${wanted}`)
    }
    expect(found).toEqual(expected)
  }

  beforeAll(async () => {
    await server.admin('/v1/namespaces.create', { name: 'shop' })
  })

  it('every route has a permission, and a public route is one that needs no credential by contract', () => {
    for (const row of routes) expect(row.permission, row.path).toBeTypeOf('string')
    expect(guarded.length).toBeGreaterThan(70)
    const open = routes.filter(({ permission }) => permission === 'public').map(({ path }) => path)
    const allowed =
      /^\/($|assets\/|docs|health|healthz$|readyz$|metrics$|openapi\.json$|actuator\/health(?:\/liveness|\/readiness)?$|channel|producer|consumer|dlq-status|job|_status|api\/v1\/session$)/
    expect(open.filter((path) => !allowed.test(path))).toEqual([])
  })

  it('a request without a key is refused on every route', () => expectAll({}, () => 'missing'))

  it('a key that does not exist is refused on every route', () =>
    expectAll(bearer(`qtr-live-${'0'.repeat(43)}`), () => 'refused'))

  it('a key that has expired is refused on every route', async () => {
    const { key } = await server.createKey({ roles: ['Admin'], expiresAt: '2020-01-01T00:00:00Z' })
    await expectAll(bearer(key), () => 'refused')
  })

  it('a key that was revoked is refused on every route', async () => {
    const { key, id } = await server.createKey({ roles: ['Admin'] })
    await server.admin('/v1/apikeys.delete', { id })
    await expectAll(bearer(key), () => 'refused')
  })

  it.each(Object.entries(standardRoles))(
    'the role %s passes exactly its permissions',
    async (role, permissions) => {
      const { key } = await server.createKey({ roles: [role] })
      await expectAll(bearer(key), ({ permission }) =>
        permissions.includes(permission) ? 'passed' : 'denied',
      )
    },
  )

  it('a user without a role passes no route', async () => {
    const { key } = await server.createKey()
    await expectAll(bearer(key), () => 'denied')
  })

  it('an administrator of one namespace passes no route about all tenants', async () => {
    const { key } = await server.createKey({ roles: ['shop:Admin'] })
    await expectAll(bearer(key), ({ permission }) => (isSystemPermission(permission) ? 'denied' : 'passed'))
  })
})
