/**
 * Creates what a store needs before the first request: the namespace `_system`, the user `anonymous` and the
 * standard roles. The first start also binds `anonymous` to `Admin`, as the Queue API demands. The first
 * start that requires credentials removes this binding, so that a server that was tried out on one machine
 * is not open to the network, and creates an administrator with a key.
 */
import { anonymousUserId } from '../core/access/identity.ts'
import type { Role } from '../core/access/records.ts'
import { standardRoles } from '../core/access/standard-roles.ts'
import { systemNamespace } from '../core/items/queue.ts'
import type { Clock, Instant } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'
import type { AccessChange, AccessState } from '../storage/contract/access.ts'
import type { AuditEntry } from '../storage/contract/audit.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { createKeyText } from './api-key-text.ts'
import { findOne } from './find-records.ts'
import { createId } from './namespaces-and-users.ts'
import { retryOnConflict } from './retry-on-conflict.ts'

type Parts = Readonly<{
  storage: Pick<StoreReads, 'listAccess' | 'listQueues' | 'readAccessState'>
  engine: Pick<Engine, 'write'>
  clock: Clock
}>

type Plan = { changes: AccessChange[]; entries: AuditEntry[]; key: string | null }

const adminName = 'admin'

/**
 * Creates what is missing. Several servers can call it at once. Returns the key of the administrator if this
 * call created it; it is not stored and cannot be shown again.
 */
export function prepareAccess(parts: Parts, isClosed: boolean): Promise<string | null> {
  const { storage, engine } = parts
  return retryOnConflict(async () => {
    const state = await storage.readAccessState()
    const plan: Plan = { changes: [], entries: [], key: null }
    const roles = await planInvariants(parts, state, plan)
    if (isClosed && state.closedAt === null) await planClosing(parts, state, roles, plan)
    const { changes, entries, key } = plan
    if (changes.length > 0) {
      await engine.write([
        { op: 'change-access', version: state.version, changes },
        { op: 'audit', entries },
      ])
    }
    return key
  })
}

/** Returns the standard roles by name. */
async function planInvariants(
  { storage, clock }: Parts,
  { initialisedAt }: AccessState,
  { changes }: Plan,
): Promise<ReadonlyMap<string, Role>> {
  const now = clock.now()
  if ((await findOne(storage, { of: 'namespaces', name: systemNamespace })) === undefined) {
    const namespace = { name: systemNamespace, description: '', keyTag: '', createdAt: now }
    changes.push({ change: 'put-namespace', namespace })
  }
  if ((await findOne(storage, { of: 'users', id: anonymousUserId })) === undefined) {
    changes.push({ change: 'put-user', user: createUser(anonymousUserId, anonymousUserId, now) })
  }
  const roles = new Map<string, Role>()
  for (const [name, permissions] of Object.entries(standardRoles)) {
    const found = await findOne(storage, { of: 'roles', namespace: systemNamespace, name })
    const isCurrent = found?.permissions.join() === permissions.join()
    const base = found ?? { id: createId(clock), namespace: systemNamespace, name, createdAt: now }
    const role = { ...base, permissions }
    if (!isCurrent) changes.push({ change: 'put-role', role })
    roles.set(name, role)
  }
  if (initialisedAt === null) {
    const binding = createBinding(clock, anonymousUserId, roles)
    changes.push(
      { change: 'create-role-binding', binding },
      { change: 'set-state', initialisedAt: now, openBindingId: binding.id },
    )
  }
  return roles
}

async function planClosing(
  { storage, clock }: Parts,
  { openBindingId }: AccessState,
  roles: ReadonlyMap<string, Role>,
  plan: Plan,
): Promise<void> {
  const now = clock.now()
  const { changes, entries } = plan
  const isOpenedNow = changes.some(({ change }) => change === 'create-role-binding')
  if (isOpenedNow) {
    plan.changes = changes.filter(({ change }) => change !== 'create-role-binding' && change !== 'set-state')
    plan.changes.push({ change: 'set-state', initialisedAt: now })
  } else if (openBindingId !== null) {
    changes.push({ change: 'delete-role-binding', id: openBindingId })
  }
  plan.changes.push({ change: 'set-state', closedAt: now, openBindingId: null })
  const audit = (action: string, target: string, details: AuditEntry['details']): void => {
    entries.push({
      at: now,
      actor: 'server',
      action,
      target,
      reason: 'first start with access control',
      requestId: '',
      details,
    })
  }
  audit('access.close', systemNamespace, { binding: openBindingId })
  if (await hasAdministrator(storage, roles, now)) return
  const username = await chooseUsername(storage)
  const user = createUser(createId(clock), username, now)
  const { key, prefix, hash } = createKeyText('admin')
  const id = createId(clock)
  plan.changes.push(
    { change: 'put-user', user },
    { change: 'create-role-binding', binding: createBinding(clock, user.id, roles) },
    {
      change: 'create-api-key',
      hash,
      key: {
        id,
        userId: user.id,
        scope: null,
        name: 'first start',
        prefix,
        expiresAt: null,
        lastUsedAt: null,
        createdAt: now,
      },
    },
  )
  audit('apikey.create', id, { user_id: user.id, username, prefix })
  plan.key = key
}

/** Whether somebody but `anonymous` is `Admin` everywhere and has a key that has not expired. */
async function hasAdministrator(
  storage: Parts['storage'],
  roles: ReadonlyMap<string, Role>,
  now: Instant,
): Promise<boolean> {
  const roleId = roles.get('Admin')?.id ?? ''
  const query = { of: 'role-bindings', namespace: systemNamespace, roleId, countMax: 100 } as const
  for (const { userId } of await storage.listAccess(query)) {
    if (userId === anonymousUserId) continue
    const keys = await storage.listAccess({ of: 'api-keys', userId, countMax: 100 })
    if (keys.some(({ expiresAt, scope }) => scope === null && (expiresAt === null || expiresAt > now)))
      return true
  }
  return false
}

async function chooseUsername(storage: Parts['storage']): Promise<string> {
  for (let number = 1; ; number++) {
    const username = number === 1 ? adminName : `${adminName}-${number}`
    if ((await findOne(storage, { of: 'users', username })) === undefined) return username
  }
}

function createUser(id: string, username: string, now: Instant) {
  return { id, username, email: '', externalId: '', createdAt: now, updatedAt: now }
}

function createBinding(clock: Clock, userId: string, roles: ReadonlyMap<string, Role>) {
  const role = roles.get('Admin')
  if (role === undefined) throw new Error('the standard role Admin is missing')
  return { id: createId(clock), namespace: systemNamespace, userId, roleId: role.id, createdAt: clock.now() }
}
