import type { FastifyRequest } from 'fastify'
import { KnownError } from '../../errors.ts'

/** The permission that a route requires. `public` never requires a credential. */
export const permissions = [
  'public',
  'server.info',
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
  'letter.redrive',
  'letter.edit',
  'letter.discard',
  'letter.restore',
  'letter.capture',
  'campaign.read',
  'campaign.write',
  'audit.read',
] as const

export type Permission = (typeof permissions)[number]

/** The client that sent a request. The audit log records its name. */
export type Caller = Readonly<{ name: string }>

/**
 * Identifies the caller, or throws a KnownError if the caller lacks the permission. Called before the
 * body is read.
 */
export type Authorize = (permission: Permission, request: FastifyRequest) => Caller

const anonymous: Caller = { name: 'anonymous' }

/** Used without access control. Protected mode then accepts requests from this machine only. */
export const allowAll: Authorize = () => anonymous

const readPermissions: ReadonlySet<Permission> = new Set<Permission>([
  'public',
  'server.info',
  'queue.list',
  'queue.stats',
  'letter.read',
  'campaign.read',
  'audit.read',
])

export function isReadPermission(permission: Permission): boolean {
  return readPermissions.has(permission)
}

/** Used on a read-only server: refuses every request that could write, before its body is read. */
export const allowReads: Authorize = (permission, { method, url }) => {
  if (readPermissions.has(permission)) return anonymous
  const path = url.replace(/\?.*$/s, '')
  throw new KnownError(
    'READ_ONLY',
    `this server is read-only (read_only is set), and ${method} ${path} needs the permission ${permission}`,
  )
}
