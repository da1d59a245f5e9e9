import type { FastifyRequest } from 'fastify'
import { unrestricted } from '../../core/access/identity.ts'
import { isReadPermission, type Permission } from '../../core/access/permissions.ts'
import { KnownError } from '../../errors.ts'
import { type Caller, createCaller } from './caller.ts'

export { isReadPermission, type Permission, permissions } from '../../core/access/permissions.ts'

/**
 * Identifies the caller, or throws a KnownError if the caller has the permission in no namespace. Called
 * before the body is read. A promise: the credential has to be looked up.
 */
export type Authorize = (permission: Permission, request: FastifyRequest) => Caller | Promise<Caller>

/** Used without access control. Protected mode then accepts requests from this machine only. */
export const allowAll: Authorize = (_permission, request) => createCaller(unrestricted, request)

/** Used on a read-only server without access control. */
export const allowReads: Authorize = (permission, request) => {
  requireRead(permission, request)
  return createCaller(unrestricted, request)
}

/** Refuses every request that could write, before its body is read. */
export function requireRead(permission: Permission, { method, url }: FastifyRequest): void {
  if (isReadPermission(permission)) return
  const path = url.replace(/\?.*$/s, '')
  throw new KnownError(
    'READ_ONLY',
    `this server is read-only (read_only is set), and ${method} ${path} needs the permission ${permission}`,
  )
}
