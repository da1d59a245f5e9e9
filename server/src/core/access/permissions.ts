/**
 * The permissions that a route can require and that a role can hold. `public` is no permission that a role
 * holds: such a route never requires a credential. `docs/access.md` lists the routes of each permission.
 */
export const permissions = [
  'public',
  'system.health',
  'system.metrics',
  'system.info',
  'system.read',
  'system.write',
  'queue.create',
  'queue.update',
  'queue.delete',
  'queue.list',
  'queue.stats',
  'queue.produce',
  'queue.lease',
  'queue.complete',
  'queue.retry',
  'queue.clear',
  'letter.read',
  'payload.read',
  'letter.redrive',
  'letter.edit',
  'letter.discard',
  'letter.purge',
  'letter.restore',
  'letter.capture',
  'group.write',
  'campaign.read',
  'campaign.write',
  'webhook.read',
  'webhook.write',
  'kafka.read',
  'kafka.write',
  'worker.read',
  'worker.write',
  'alert.read',
  'alert.write',
  'audit.read',
  'access.read',
  'access.write',
  'namespace.create',
  'namespace.update',
  'namespace.list',
  'namespace.delete',
  'user.create',
  'user.list',
  'user.delete',
  'apikey.create',
  'apikey.list',
  'apikey.delete',
  'role.create',
  'role.list',
  'role.update',
  'role.delete',
  'rolebinding.create',
  'rolebinding.list',
  'rolebinding.delete',
] as const

export type Permission = (typeof permissions)[number]

/** The permissions that a role can hold. */
export const grantablePermissions: readonly Permission[] = permissions.filter((name) => name !== 'public')

const known: ReadonlySet<string> = new Set(grantablePermissions)

export function isPermission(text: string): text is Permission {
  return known.has(text)
}

const systemFamilies = new Set(['namespace', 'user', 'apikey', 'access', 'webhook', 'kafka'])

/**
 * Whether the permission concerns all tenants, so that only a role in `_system` can give it. A role that is
 * bound in another namespace does not, whatever permissions it lists.
 */
export function isSystemPermission(permission: Permission): boolean {
  return permission === 'system.write' || systemFamilies.has(permission.slice(0, permission.indexOf('.')))
}

const readActions = new Set(['read', 'list', 'info', 'health', 'metrics', 'stats'])

/** Whether a request with this permission changes nothing. */
export function isReadPermission(permission: Permission): boolean {
  return permission === 'public' || readActions.has(permission.slice(permission.indexOf('.') + 1))
}
