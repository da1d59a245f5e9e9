import { beforeEach, expect, it } from 'vitest'
import type { ApiKey, Role, RoleBinding, User } from '../../../src/core/access/records.ts'
import type { AccessChange } from '../../../src/storage/contract/access.ts'
import { noon } from '../../make.ts'
import { changeAccess, putNamespace } from '../support/change-access.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

const day = 86_400_000_000

describeStores('access control', (given) => {
  let runs = 0
  let prefix = ''
  /** Ids and names of this test, because one store serves the whole file. */
  const own = (text: string) => `${prefix}${text}`
  const change = (...changes: readonly AccessChange[]) => changeAccess(given.storage, ...changes)

  const aUser = (name: string, more: Partial<User> = {}): User => ({
    id: own(name),
    username: own(name),
    email: '',
    externalId: '',
    createdAt: noon,
    updatedAt: noon,
    ...more,
  })
  const aKey = (id: string, userId: string, more: Partial<ApiKey> = {}): ApiKey => ({
    id: own(id),
    userId: own(userId),
    scope: null,
    name: 'a key',
    prefix: own('qtr-live-'),
    expiresAt: null,
    lastUsedAt: null,
    createdAt: noon,
    ...more,
  })
  const aRole = (name: string, more: Partial<Role> = {}): Role => ({
    id: own(`role-${name}`),
    namespace: '_system',
    name: own(name),
    permissions: ['queue.produce'],
    createdAt: noon,
    ...more,
  })
  const aBinding = (userId: string, role: Role, more: Partial<RoleBinding> = {}): RoleBinding => ({
    id: own(`binding-${userId}`),
    namespace: '_system',
    userId: own(userId),
    roleId: role.id,
    createdAt: noon,
    ...more,
  })
  const hashOf = (text: string) => own(text).padEnd(64, '0')
  const putUser = (name: string) => change({ change: 'put-user', user: aUser(name) })
  const createKey = (key: ApiKey) =>
    change({ change: 'create-api-key', key, hash: hashOf(key.id.slice(prefix.length)) })

  beforeEach(() => {
    prefix = `t${String(++runs).padStart(3, '0')}-`
  })

  it('every field of a record is stored, and records are listed in byte order of their names or ids', async () => {
    const { storage } = given
    const user = aUser('ann', { email: 'ann@example.com', externalId: '“42”', updatedAt: noon + 5 })
    const key = aKey('k1', 'ann', { scope: 'shop', expiresAt: noon + day, lastUsedAt: noon + 1 })
    const role = aRole('clerk', { permissions: ['queue.lease', 'payload.read'] })
    const binding = aBinding('ann', role, { namespace: 'shop' })
    await change(
      { change: 'put-user', user },
      { change: 'create-api-key', key, hash: hashOf('k1') },
      { change: 'put-role', role },
      { change: 'create-role-binding', binding },
    )
    expect(await storage.listAccess({ of: 'users', id: user.id, countMax: 2 })).toEqual([user])
    expect(await storage.listAccess({ of: 'users', username: user.username, countMax: 2 })).toEqual([user])
    expect(await storage.listAccess({ of: 'api-keys', userId: user.id, countMax: 2 })).toEqual([key])
    expect(await storage.listAccess({ of: 'api-keys', prefix: key.prefix, countMax: 2 })).toEqual([key])
    const byName = { of: 'roles', namespace: '_system', name: role.name, countMax: 2 } as const
    expect(await storage.listAccess(byName)).toEqual([role])
    const byRole = { of: 'role-bindings', roleId: role.id, countMax: 2 } as const
    expect(await storage.listAccess(byRole)).toEqual([binding])
    for (const name of ['a', 'B', 'ä']) await putNamespace(storage, own(name))
    const list = async (from: string, countMax: number) =>
      (await storage.listAccess({ of: 'namespaces', from: own(from), countMax })).map(({ name }) => name)
    expect(await list('', 3)).toEqual(['B', 'a', 'ä'].map(own))
    expect(await list('a', 1)).toEqual([own('a')])
    expect(await list('b', 1)).toEqual([own('ä')])
  })

  it('a put replaces the record with the same id, and keeps the time of its creation', async () => {
    const { storage } = given
    const namespace = { name: own('shop'), description: 'one', keyTag: '', createdAt: noon }
    await change({ change: 'put-namespace', namespace })
    const later = { ...namespace, description: 'two', keyTag: 'shop', createdAt: noon + 1 }
    await change({ change: 'put-namespace', namespace: later })
    const found = await storage.listAccess({ of: 'namespaces', name: own('shop'), countMax: 2 })
    expect(found).toEqual([{ ...later, createdAt: noon }])
    const role = aRole('clerk')
    await change({ change: 'put-role', role })
    await change({ change: 'put-role', role: { ...role, permissions: [] } })
    expect(await storage.listAccess({ of: 'roles', id: role.id, countMax: 2 })).toMatchObject([
      { permissions: [] },
    ])
  })

  it('a change that was checked against an older version is refused and changes nothing', async () => {
    const { storage } = given
    const { version } = await storage.readAccessState()
    await putUser('ann')
    const late = storage.write([
      { op: 'change-access', version, changes: [{ change: 'put-user', user: aUser('bob') }] },
    ])
    await expectRefusal(late, 'ACCESS_CHANGED')
    expect(await storage.listAccess({ of: 'users', id: own('bob'), countMax: 1 })).toEqual([])
    expect((await storage.readAccessState()).version).toBe(version + 1)
  })

  it('exactly one of the changes that were checked against one version is written', async () => {
    const { storage } = given
    const { version } = await storage.readAccessState()
    const writes = ['ann', 'bob', 'cid'].map((name) =>
      storage.write([{ op: 'change-access', version, changes: [{ change: 'put-user', user: aUser(name) }] }]),
    )
    const results = await Promise.allSettled(writes)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const users = await storage.listAccess({ of: 'users', from: prefix, countMax: 10 })
    expect(users.filter(({ id }) => id.startsWith(prefix))).toHaveLength(1)
  })

  it('the holder of a key has the roles of all bindings of its user', async () => {
    const { storage } = given
    const [clerk, boss] = [aRole('clerk'), aRole('boss', { permissions: ['queue.delete'] })]
    await change(
      { change: 'put-user', user: aUser('ann') },
      { change: 'put-role', role: clerk },
      { change: 'put-role', role: boss },
      { change: 'create-role-binding', binding: aBinding('ann', clerk, { id: own('b1') }) },
      { change: 'create-role-binding', binding: aBinding('ann', boss, { id: own('b2'), namespace: 'shop' }) },
    )
    const key = aKey('k1', 'ann', { scope: 'shop' })
    await createKey(key)
    const { epoch } = await storage.readAccessState()
    const roles = [
      { namespace: '_system', role: clerk },
      { namespace: 'shop', role: boss },
    ]
    const user = aUser('ann')
    expect(await storage.readHolder({ keyHash: hashOf('k1') })).toEqual({
      epoch,
      user,
      key,
      session: null,
      roles,
    })
    expect(await storage.readHolder({ userId: user.id })).toEqual({
      epoch,
      user,
      key: null,
      session: null,
      roles,
    })
    expect(await storage.readHolder({ keyHash: hashOf('k2') })).toBeNull()
    expect(await storage.readHolder({ userId: own('bob') })).toBeNull()
  })

  it('the epoch changes with every change that can change what an existing credential allows', async () => {
    const { storage } = given
    const epochAfter = async (...changes: readonly AccessChange[]) => {
      const before = (await storage.readAccessState()).epoch
      await change(...changes)
      return (await storage.readAccessState()).epoch - before
    }
    const role = aRole('clerk')
    expect(await epochAfter({ change: 'put-user', user: aUser('ann') })).toBe(0)
    const created = { change: 'create-api-key', key: aKey('k1', 'ann'), hash: hashOf('k1') } as const
    expect(await epochAfter(created)).toBe(0)
    expect(await epochAfter({ change: 'put-role', role })).toBe(1)
    const bound = { change: 'create-role-binding', binding: aBinding('ann', role) } as const
    expect(await epochAfter(bound)).toBe(1)
    expect(await epochAfter({ change: 'delete-role-binding', id: bound.binding.id })).toBe(1)
    expect(await epochAfter({ change: 'delete-role', id: role.id })).toBe(1)
    expect(await epochAfter({ change: 'delete-api-key', id: own('k1') })).toBe(1)
    expect(await epochAfter({ change: 'delete-user', id: own('ann') })).toBe(1)
  })

  it('deleting a user deletes its keys, its sessions and its bindings', async () => {
    const { storage } = given
    const role = aRole('clerk')
    await change(
      { change: 'put-user', user: aUser('ann') },
      { change: 'put-role', role },
      { change: 'create-role-binding', binding: aBinding('ann', role) },
    )
    await createKey(aKey('k1', 'ann'))
    const session = { hash: hashOf('s1'), keyId: own('k1'), createdAt: noon, expiresAt: noon + day }
    await given.run({ op: 'create-session', session, now: noon })
    expect(await storage.readHolder({ sessionHash: session.hash })).toMatchObject({
      session,
      key: { id: own('k1') },
      user: { id: own('ann') },
    })
    await change({ change: 'delete-user', id: own('ann') })
    expect(await storage.readHolder({ sessionHash: session.hash })).toBeNull()
    expect(await storage.readHolder({ keyHash: hashOf('k1') })).toBeNull()
    expect(await storage.listAccess({ of: 'api-keys', userId: own('ann'), countMax: 1 })).toEqual([])
    expect(await storage.listAccess({ of: 'role-bindings', userId: own('ann'), countMax: 1 })).toEqual([])
  })

  it('a session ends with its key, and cannot be created for a key that was deleted', async () => {
    const { storage } = given
    await putUser('ann')
    await createKey(aKey('k1', 'ann'))
    const session = { hash: hashOf('s1'), keyId: own('k1'), createdAt: noon, expiresAt: noon + day }
    await given.run({ op: 'create-session', session, now: noon })
    await change({ change: 'delete-api-key', id: own('k1') })
    expect(await storage.readHolder({ sessionHash: session.hash })).toBeNull()
    await expectRefusal(given.run({ op: 'create-session', session, now: noon }), 'API_KEY_NOT_FOUND')
  })

  it('a session can be ended, and creating a session removes the ones that have ended', async () => {
    const { storage } = given
    await putUser('ann')
    await createKey(aKey('k1', 'ann'))
    const aSession = (name: string, expiresAt: number) => ({
      hash: hashOf(name),
      keyId: own('k1'),
      createdAt: noon,
      expiresAt,
    })
    const exists = async (name: string) => (await storage.readHolder({ sessionHash: hashOf(name) })) !== null
    await given.run({ op: 'create-session', session: aSession('s1', noon + 1), now: noon })
    await given.run({ op: 'create-session', session: aSession('s2', noon + day), now: noon + 1 })
    expect([await exists('s1'), await exists('s2')]).toEqual([false, true])
    await change({ change: 'delete-session', hash: hashOf('s2') })
    expect(await exists('s2')).toBe(false)
  })

  it('the newest use of a key is recorded, and unknown keys are skipped', async () => {
    const { storage } = given
    await putUser('ann')
    for (const id of ['k1', 'k2']) await createKey(aKey(id, 'ann'))
    const record = (...uses: readonly (readonly [string, number])[]) =>
      given.run({ op: 'record-key-uses', uses: uses.map(([id, at]) => ({ keyId: own(id), at })) })
    await record(['k1', noon + 5], ['gone', noon], ['k2', noon + 1])
    await record(['k1', noon + 2], ['k2', noon + 3])
    const keys = await storage.listAccess({ of: 'api-keys', userId: own('ann'), countMax: 5 })
    expect(keys.map(({ lastUsedAt }) => lastUsedAt)).toEqual([noon + 5, noon + 3])
  })

  it('a namespace with queues is not deleted, and a queue is not created in a namespace that does not exist', async () => {
    const { storage } = given
    await putNamespace(storage, own('shop'))
    const name = await given.queue({ namespace: own('shop') })
    const remove = () => change({ change: 'delete-namespace', name: own('shop') })
    await expectRefusal(remove(), 'NAMESPACE_IN_USE')
    await given.run({ op: 'delete-queue', name })
    await remove()
    expect(await storage.listAccess({ of: 'namespaces', name: own('shop'), countMax: 1 })).toEqual([])
    await expectRefusal(given.queue({ namespace: own('shop') }), 'NAMESPACE_NOT_FOUND')
  })

  it('deleting a namespace and creating a queue in it at the same time never leaves a queue without namespace', async () => {
    const { storage } = given
    for (let round = 0; round < 10; round++) {
      const name = own(`n${round}`)
      await putNamespace(storage, name)
      await Promise.allSettled([
        given.queue({ namespace: name }),
        change({ change: 'delete-namespace', name }),
      ])
      const queues = await storage.listQueues({ namespace: name, countMax: 1 })
      const namespaces = await storage.listAccess({ of: 'namespaces', name, countMax: 1 })
      expect(namespaces).toHaveLength(queues.length)
    }
  })

  it('the state of access control is stored field by field', async () => {
    const { storage } = given
    await change({ change: 'set-state', initialisedAt: noon, openBindingId: own('open') })
    await change({ change: 'set-state', closedAt: noon + 1, openBindingId: null })
    const state = { initialisedAt: noon, closedAt: noon + 1, openBindingId: null }
    expect(await storage.readAccessState()).toMatchObject(state)
  })

  it.each(['user\0name', 'user\ud800'])('a text that no store can keep is refused: %j', async (username) => {
    await expectRefusal(change({ change: 'put-user', user: aUser('ann', { username }) }), 'BAD_REQUEST')
  })
})
