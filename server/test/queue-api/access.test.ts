import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { standardRoles } from '../../src/core/access/standard-roles.ts'
import { describeFormats, describeQueueServer, noonText } from './servers.ts'

const idForm = /^[0-9A-Za-z]{27}$/
const long = (length: number) => 'x'.repeat(length)

describeFormats('namespaces', (api) => {
  const list = (body: object = {}) => api.call('namespaces.list', body as never)

  it('the system namespace exists, and a new one is listed with its fields', async () => {
    await api.setClock({ now: noonText })
    const shop = { name: 'shop', description: 'orders “ä”', api_key_tag: 'shop1' }
    expect(await api.call('namespaces.create', shop)).toEqual({ code: 200 })
    const { items } = await list()
    expect(items.map(({ name }: { name: string }) => name)).toEqual(['_system', 'shop'])
    expect(items[1]).toEqual({ ...shop, created_at: noonText })
    expect(await list({ pivot: 'a', limit: 1 })).toEqual({ items: [items[1]] })
    expect((await list({ pivot: 't' })).items ?? []).toEqual([])
    await api.call('namespaces.update', { name: 'shop', description: 'new' })
    expect((await list({ pivot: 'shop' })).items).toEqual([
      { name: 'shop', description: 'new', created_at: noonText },
    ])
  })

  it.each([
    [{ name: long(257) }, "namespace name is invalid; cannot be greater than '256' characters"],
    [{}, 'namespace name is invalid; cannot be empty'],
    [{ name: 'a b' }, "namespace name is invalid; 'a b' cannot contain whitespace"],
    [{ name: 'a~b' }, "namespace name is invalid; 'a~b' cannot contain '~' character"],
    [{ name: 'a:b' }, "namespace name is invalid; 'a:b' cannot contain ':' character"],
    [{ name: 'ok', api_key_tag: long(17) }, 'api_key_tag is invalid; cannot be greater than 16 characters'],
    [{ name: 'ok', api_key_tag: 'Ab' }, 'api_key_tag is invalid; must be lowercase alphanumeric only'],
    [{ name: '_own' }, "namespace name is reserved; '_own' names starting with '_' are reserved"],
  ])('a namespace is refused with the message of the contract: %j', async (body, message) => {
    expect(await api.callRefused('namespaces.create', body as never)).toBe(message)
  })

  it('a namespace that exists is not created again, and a missing one is reported with 453', async () => {
    await api.call('namespaces.create', { name: 'twice' })
    expect(await api.callRefused('namespaces.create', { name: 'twice' })).toBe(
      "namespace already exists; 'twice' already exists",
    )
    for (const method of ['namespaces.update', 'namespaces.delete']) {
      expect(await api.callRefused(method, { name: 'gone' }, 453)).toBe(
        "namespace does not exist; 'gone' was not found",
      )
    }
    expect(await api.callRefused('namespaces.delete', { name: '_system' })).toContain('reserved')
  })

  it('a namespace is deleted only without bindings, roles and queues, which are reported in this order', async () => {
    const namespace = 'full'
    await api.call('namespaces.create', { name: namespace })
    const { id: user_id } = await api.call('users.create', { username: 'full-user' })
    const role = { namespace, name: 'clerk' }
    await api.call('roles.create', { ...role, permissions: ['queue.produce'] })
    const binding = { namespace, role_name: 'clerk', user_id }
    await api.call('rolebindings.create', binding)
    const queue = await api.createQueue({ namespace })
    const refusal = () => api.callRefused('namespaces.delete', { name: namespace })
    expect(await refusal()).toBe(
      "namespace has role bindings; 'full' has role bindings, delete role bindings first",
    )
    await api.call('rolebindings.delete', binding)
    expect(await refusal()).toBe("namespace has roles; 'full' has roles, delete roles first")
    await api.call('roles.delete', role)
    expect(await refusal()).toBe("namespace has queues; 'full' has queues, delete queues first")
    await api.call('queues.delete', { queue_name: queue })
    await api.call('namespaces.delete', { name: namespace })
    expect(await api.callRefused('namespaces.delete', { name: namespace }, 453)).toContain('was not found')
  })
})

describeFormats('users and keys', (api) => {
  it('a user is created, listed and deleted with its keys and bindings', async () => {
    await api.setClock({ now: noonText })
    const user = { username: 'ann', email: 'ann@example.com', external_id: '42' }
    const { id } = await api.call('users.create', user)
    expect(id).toMatch(idForm)
    const times = { created_at: noonText, updated_at: noonText }
    expect((await api.call('users.list', { pivot: id, limit: 1 })).items).toEqual([{ id, ...user, ...times }])
    expect(await api.callRefused('users.create', { username: 'ann' })).toBe(
      "username is already taken; 'ann' is already taken",
    )
    await api.call('apikeys.create', { user_id: id, name: 'one' })
    await api.call('rolebindings.create', { namespace: '_system', role_name: 'Viewer', user_id: id })
    await api.call('users.delete', { id })
    expect((await api.call('apikeys.list', { user_id: id })).items ?? []).toEqual([])
    expect((await api.call('rolebindings.list', { user_id_filter: id })).items ?? []).toEqual([])
    expect(await api.callRefused('users.delete', { id }, 453)).toBe(
      `user does not exist; '${id}' was not found`,
    )
  })

  it.each([
    [{ username: long(129) }, "username is invalid; cannot be greater than '128' characters"],
    [{}, 'username is invalid; cannot be empty'],
    [{ username: 'a', email: long(257) }, "email is invalid; cannot be greater than '256' characters"],
    [
      { username: 'a', external_id: long(257) },
      "external_id is invalid; cannot be greater than '256' characters",
    ],
  ])('a user is refused with the message of the contract: %j', async (body, message) => {
    expect(await api.callRefused('users.create', body as never)).toBe(message)
  })

  it('a key is shown once, and has the tag of the request, of its namespace, or live', async () => {
    const { id: user_id } = await api.call('users.create', { username: 'bob' })
    await api.call('namespaces.create', { name: 'tagged', api_key_tag: 'tag7' })
    const create = (more: object) => api.call('apikeys.create', { user_id, name: 'k', ...more } as never)
    const form = (tag: string) => new RegExp(`^qtr-${tag}-[0-9A-Za-z]{43}$`)
    const plain = await create({})
    expect(plain.key).toMatch(form('live'))
    expect(plain.prefix).toBe(plain.key.slice(0, 'qtr-live-'.length + 8))
    expect((await create({ namespace_scope: 'tagged' })).key).toMatch(form('tag7'))
    expect((await create({ namespace_scope: 'tagged', key_tag: 'own' })).key).toMatch(form('own'))
    const expires_at = '2031-01-01T00:00:00Z'
    const { id, prefix } = await create({ namespace_scope: 'tagged', expires_at })
    const { items } = await api.call('apikeys.list', { user_id, pivot: id })
    const [listed] = items
    expect(listed).toEqual({
      id,
      user_id,
      namespace_scope: 'tagged',
      name: 'k',
      prefix,
      expires_at,
      created_at: expect.any(String),
    })
    await api.call('apikeys.delete', { id })
    expect(await api.callRefused('apikeys.delete', { id }, 401)).toBe('api key does not exist')
  })

  it.each([
    [{ name: 'k' }, 400, 'user_id is invalid; cannot be empty'],
    [{ user_id: 'u', name: long(129) }, 400, "name is invalid; cannot be greater than '128' characters"],
    [{ user_id: 'u', key_tag: 'A' }, 400, 'key_tag is invalid; must be lowercase alphanumeric only'],
    [{ user_id: 'u', key_tag: long(17) }, 400, 'key_tag is invalid; cannot be greater than 16 characters'],
    [{ user_id: 'u', name: 'k' }, 453, "user does not exist; 'u' was not found"],
  ])('a key is refused with the message of the contract: %j', async (body, status, message) => {
    expect(await api.callRefused('apikeys.create', body as never, status)).toBe(message)
  })
})

describeFormats('roles and bindings', (api) => {
  it('the standard roles exist and cannot be changed', async () => {
    const { items } = await api.call('roles.list', {})
    const byName = Object.fromEntries(
      items.map(({ name, permissions }: { name: string; permissions: string[] }) => [name, permissions]),
    )
    expect(byName).toMatchObject(standardRoles)
    const change = { namespace: '_system', name: 'Admin' }
    for (const method of ['roles.update', 'roles.delete']) {
      expect(await api.callRefused(method, change)).toBe(
        "cannot modify or delete standard role; 'Admin' is a standard role",
      )
    }
    expect(await api.callRefused('roles.create', { ...change, permissions: [] })).toBe(
      "role already exists; '_system:Admin' already exists",
    )
  })

  it('the first start gives the user anonymous the role Admin', async () => {
    const { items: roles } = await api.call('roles.list', {})
    const admin = roles.find(({ name }: { name: string }) => name === 'Admin')
    const { items } = await api.call('rolebindings.list', { user_id_filter: 'anonymous' })
    expect(items).toEqual([
      {
        id: expect.stringMatching(idForm),
        namespace: '_system',
        user_id: 'anonymous',
        role_id: admin.id,
        created_at: expect.any(String),
      },
    ])
    const users = (await api.call('users.list', {})).items
    expect(users).toContainEqual(expect.objectContaining({ id: 'anonymous', username: 'anonymous' }))
  })

  it('a role is created, changed and deleted in its namespace', async () => {
    await api.setClock({ now: noonText })
    await api.call('namespaces.create', { name: 'roles' })
    const role = { namespace: 'roles', name: 'clerk' }
    const { id } = await api.call('roles.create', { ...role, permissions: ['queue.lease', 'queue.lease'] })
    expect(id).toMatch(idForm)
    const listed = async () => (await api.call('roles.list', { namespace: 'roles' })).items
    expect(await listed()).toEqual([{ id, ...role, permissions: ['queue.lease'], created_at: noonText }])
    await api.call('roles.update', { ...role, permissions: ['queue.stats'] })
    expect((await listed())[0].permissions).toEqual(['queue.stats'])
    const { id: user_id } = await api.call('users.create', { username: 'roles-user' })
    const binding = { namespace: 'roles', role_name: 'clerk', user_id }
    await api.call('rolebindings.create', binding)
    expect(await api.callRefused('roles.delete', role)).toBe(
      "role has active bindings; 'clerk' has active bindings, delete bindings first",
    )
    await api.call('rolebindings.delete', binding)
    await api.call('roles.delete', role)
    expect(await api.callRefused('roles.delete', role, 453)).toBe(
      "role does not exist; 'roles:clerk' was not found",
    )
  })

  it.each([
    ['roles.create', { name: 'r' }, 400, 'namespace is invalid; cannot be empty'],
    ['roles.create', { namespace: 'n' }, 400, 'name is invalid; cannot be empty'],
    [
      'roles.create',
      { namespace: 'n', name: long(129) },
      400,
      "name is invalid; cannot be greater than '128' characters",
    ],
    [
      'roles.create',
      { namespace: 'n', name: 'a:b' },
      400,
      "name is invalid; 'a:b' cannot contain ':' character",
    ],
    [
      'roles.create',
      { namespace: 'n', name: 'r', permissions: ['queue.fly'] },
      400,
      "permission is invalid; 'queue.fly' is not a recognized permission",
    ],
    ['roles.create', { namespace: 'n', name: 'r' }, 453, "namespace does not exist; 'n' was not found"],
    ['roles.update', { namespace: 'n', name: 'r' }, 453, "namespace does not exist; 'n' was not found"],
    ['rolebindings.create', { role_name: 'r', user_id: 'u' }, 400, 'namespace is invalid; cannot be empty'],
    [
      'rolebindings.create',
      { namespace: '_system', user_id: 'u' },
      400,
      'role_name is invalid; cannot be empty',
    ],
    [
      'rolebindings.create',
      { namespace: '_system', role_name: 'r' },
      400,
      'user_id is invalid; cannot be empty',
    ],
    [
      'rolebindings.create',
      { namespace: '_system', role_name: 'r', user_id: 'a:b' },
      400,
      "user_id is invalid; 'a:b' cannot contain ':' character",
    ],
    [
      'rolebindings.create',
      { namespace: '_system', role_name: 'r', user_id: 'u' },
      453,
      "role does not exist; '_system:r' was not found",
    ],
    [
      'rolebindings.create',
      { namespace: '_system', role_name: 'Viewer', user_id: 'u' },
      453,
      "user does not exist; 'u' was not found",
    ],
    [
      'rolebindings.delete',
      { role_name: 'r', user_id: 'u' },
      453,
      "role does not exist; '_system:r' was not found",
    ],
  ])('%s is refused with the message of the contract: %j', async (method, body, status, message) => {
    expect(await api.callRefused(method, body as never, status)).toBe(message)
  })

  it('a user is bound to a role once per namespace, and a standard role can be bound in every namespace', async () => {
    await api.call('namespaces.create', { name: 'bound' })
    const { id: user_id } = await api.call('users.create', { username: 'bound-user' })
    const binding = { namespace: 'bound', role_name: 'Viewer', user_id }
    const { id } = await api.call('rolebindings.create', binding)
    const [listed] = (await api.call('rolebindings.list', { namespace: 'bound' })).items
    expect(listed).toMatchObject({ id, namespace: 'bound', user_id })
    expect(await api.callRefused('rolebindings.create', binding)).toBe(
      `role binding already exists; binding for user '${user_id}' to role '${listed.role_id}' in namespace 'bound' already exists`,
    )
    await api.call('rolebindings.delete', binding)
    expect(await api.callRefused('rolebindings.delete', binding, 453)).toBe(
      `role binding does not exist; 'bound:${user_id}:${listed.role_id}' was not found`,
    )
  })

  it('lists refuse a limit that is negative or too large', async () => {
    for (const method of [
      'namespaces.list',
      'users.list',
      'apikeys.list',
      'roles.list',
      'rolebindings.list',
    ]) {
      expect(await api.callRefused(method, { limit: -1 })).toBe('limit is invalid; limit cannot be negative')
      expect(await api.callRefused(method, { limit: 65_537 })).toBe(
        'limit is invalid; cannot be greater than 65536',
      )
    }
  })
})

describe('credentials without access control', () => {
  describeQueueServer('a server with access off', 'SQLite memory', 'json', (api) => {
    it('an Authorization header in another form is refused with 401, and a key of any kind is ignored', async () => {
      const send = (authorization: string) => api.send('queues.list', {}, { headers: { authorization } })
      for (const header of ['Basic YTpi', 'Bearer', 'Bearer a b', 'qtr-live-1']) {
        const { status, body } = await send(header)
        expect([status, body.message]).toEqual([401, 'invalid authorization header format'])
      }
      expect((await send('Bearer anything')).status).toBe(200)
    })

    it('every change writes one audit row, and no row contains a key', async () => {
      const { id: user_id } = await api.call('users.create', { username: 'audited' })
      const { key } = await api.call('apikeys.create', { user_id, name: 'k' })
      const response = await fetch(`${api.url}/api/v1/audit`)
      const text = await response.text()
      expect(JSON.parse(text).entries ?? JSON.parse(text)).toBeDefined()
      expect(text).toContain('apikey.create')
      expect(text).toContain('user.create')
      expect(text).not.toContain(key.slice(-30))
      expect(text).not.toContain(createHash('sha256').update(key).digest('hex'))
    })
  })
})
