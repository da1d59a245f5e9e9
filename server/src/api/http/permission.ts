import type { FastifyRequest } from 'fastify'
import { isReadPermission, type Permission } from '../../core/access/permissions.ts'
import { KnownError } from '../../errors.ts'

export { isReadPermission, type Permission, permissions } from '../../core/access/permissions.ts'

/** The client that sent a request. */
export interface Caller {
  /** The audit log records it. */
  readonly name: string
  /** Whether the caller has the permission in the namespace. */
  may(permission: Permission, namespace: string): boolean
  /** The namespaces in which the caller has the permission. Null: all of them. */
  listNamespaces(permission: Permission): readonly string[] | null
}

/**
 * Identifies the caller, or throws a KnownError if the caller lacks the permission. Called before the
 * body is read.
 */
export type Authorize = (permission: Permission, request: FastifyRequest) => Caller

const anonymous: Caller = { name: 'anonymous', may: () => true, listNamespaces: () => null }

/** Used without access control. Protected mode then accepts requests from this machine only. */
export const allowAll: Authorize = () => anonymous

/** Used on a read-only server: refuses every request that could write, before its body is read. */
export const allowReads: Authorize = (permission, { method, url }) => {
  if (isReadPermission(permission)) return anonymous
  const path = url.replace(/\?.*$/s, '')
  throw new KnownError(
    'READ_ONLY',
    `this server is read-only (read_only is set), and ${method} ${path} needs the permission ${permission}`,
  )
}
