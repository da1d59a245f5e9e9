/** The checks of namespaces, users, keys, roles and bindings, with the contract's messages. */
import { isPermission, type Permission } from '../../../core/access/permissions.ts'
import { systemNamespace } from '../../../core/items/queue.ts'
import { requirePermission } from '../../http/caller.ts'
import { checkLength, checkNamespaceName, checkNoNul, isBlank } from '../checks/names.ts'
import { readListLimit } from '../limits.ts'
import { createBadRequest } from '../protocol/fault.ts'
import type { Call } from '../protocol/queue-route.ts'

/** The permission in the namespace, or in `_system`. Checked before anything is looked up. */
export function checkPermission({ request }: Call, permission: Permission, namespace: string): void {
  requirePermission(request.caller, permission, namespace)
}

export function checkNamespaceGiven(name: string): void {
  if (name === '') throw createBadRequest('namespace name is invalid; cannot be empty')
  checkNamespaceName(name)
}

/** The system namespace exists already, and must stay. */
export function checkNotReserved(name: string): void {
  if (name.startsWith('_')) {
    throw createBadRequest(`namespace name is reserved; '${name}' names starting with '_' are reserved`)
  }
}

export function checkKeyTag(field: 'api_key_tag' | 'key_tag', tag: string): void {
  if (Buffer.byteLength(tag) > 16) {
    throw createBadRequest(`${field} is invalid; cannot be greater than 16 characters`)
  }
  if (!/^[a-z0-9]*$/.test(tag))
    throw createBadRequest(`${field} is invalid; must be lowercase alphanumeric only`)
}

/** A text with a limit in bytes. */
export function checkText(field: string, text: string, bytesMax: number): void {
  checkLength(field, text, bytesMax)
  checkNoNul(field, text)
}

export function checkGiven(field: string, text: string): void {
  if (isBlank(text)) throw createBadRequest(`${field} is invalid; cannot be empty`)
}

export function checkNoColon(field: string, text: string): void {
  if (text.includes(':'))
    throw createBadRequest(`${field} is invalid; '${text}' cannot contain ':' character`)
}

/** The name of a role. */
export function checkRoleName(field: 'name' | 'role_name', name: string): void {
  checkGiven(field, name)
  checkText(field, name, 128)
  checkNoColon(field, name)
}

export function checkRoleNamespace(namespace: string): void {
  checkGiven('namespace', namespace)
  checkText('namespace', namespace, 256)
}

export function checkUserId(userId: string): void {
  checkGiven('user_id', userId)
  checkText('user_id', userId, 256)
  checkNoColon('user_id', userId)
}

export function readPermissions(names: readonly string[]): readonly Permission[] {
  const known = new Set<Permission>()
  for (const name of names) {
    if (!isPermission(name)) {
      throw createBadRequest(`permission is invalid; '${name}' is not a recognized permission`)
    }
    known.add(name)
  }
  return [...known]
}

/** Lists begin at the pivot, which is included. */
export function readPage(page: Readonly<{ pivot: string; limit: number }>) {
  const countMax = readListLimit(page.limit)
  checkNoNul('pivot', page.pivot)
  return { countMax, ...(page.pivot !== '' && { from: page.pivot }) }
}

/** Lists of roles and bindings, and deleting a binding: an empty namespace is the system namespace. */
export function readListNamespace(namespace: string): string {
  checkNoNul('namespace', namespace)
  return namespace === '' ? systemNamespace : namespace
}
