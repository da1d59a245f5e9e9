import { grantablePermissions, isReadPermission, type Permission } from './permissions.ts'

const inFamily =
  (...families: readonly string[]) =>
  (permission: Permission): boolean =>
    families.includes(permission.slice(0, permission.indexOf('.')))

/** Reads that show no payload, no keys and no users. */
const isOrdinaryRead = (permission: Permission): boolean =>
  isReadPermission(permission) &&
  permission !== 'payload.read' &&
  !inFamily('user', 'apikey', 'access', 'role', 'rolebinding', 'namespace')(permission)

/**
 * The roles that every server has, in the namespace `_system`. They cannot be changed or deleted, and can be
 * bound in every namespace. The Queue API defines the first three.
 */
export const standardRoles: Readonly<Record<string, readonly Permission[]>> = {
  Admin: grantablePermissions,
  NamespaceOwner: grantablePermissions.filter(inFamily('queue', 'role', 'rolebinding', 'system')),
  PublicViewer: ['system.health', 'system.metrics'],
  Viewer: grantablePermissions.filter(isOrdinaryRead),
  Operator: [
    ...grantablePermissions.filter(isOrdinaryRead),
    'payload.read',
    'letter.redrive',
    'letter.discard',
    'letter.restore',
    'group.write',
    'campaign.write',
  ],
}

/** Whether the role of `_system` with this name is a standard role. */
export function isStandardRole(name: string): boolean {
  return Object.hasOwn(standardRoles, name)
}
