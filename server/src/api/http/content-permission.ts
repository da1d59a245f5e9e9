import type { Caller } from './caller.ts'
import type { Permission } from './permission.ts'

/** The permissions with which a caller may read payloads: a worker that leases items gets them anyway. */
export const contentPermissions: readonly Permission[] = ['payload.read', 'queue.lease']

/** Whether the caller may read the content of messages of the namespace. */
export function mayReadContent(caller: Caller, namespace: string): boolean {
  return contentPermissions.some((permission) => caller.may(permission, namespace))
}
