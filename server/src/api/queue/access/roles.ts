import { create } from '@bufbuild/protobuf'
import { createAttribution } from '../../http/attribution.ts'
import {
  RoleCreateRequestSchema,
  RoleCreateResponseSchema,
  RoleSchema,
  RolesDeleteRequestSchema,
  RolesListRequestSchema,
  RolesListResponseSchema,
  RoleUpdateRequestSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toTimestamp } from '../protocol/times.ts'
import {
  checkPermission,
  checkRoleName,
  checkRoleNamespace,
  readListNamespace,
  readPage,
  readPermissions,
} from './checks.ts'

const create_ = queueRoute({
  path: '/v1/roles.create',
  permission: 'role.create',
  errors: ['NAMESPACE_NOT_FOUND', 'ROLE_EXISTS', 'ACCESS_CHANGED'],
  summary: 'Creates a role in a namespace.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RoleCreateRequestSchema),
  response: createCodec(RoleCreateResponseSchema),
  handle: async (message, call) => {
    const role = readRole(message)
    checkPermission(call, 'role.create', role.namespace)
    const id = await call.context.access().roles.create(role, createAttribution(call.request))
    return create(RoleCreateResponseSchema, { id })
  },
})

const update = queueRoute({
  path: '/v1/roles.update',
  permission: 'role.update',
  errors: ['NAMESPACE_NOT_FOUND', 'ROLE_NOT_FOUND', 'ROLE_STANDARD', 'ACCESS_CHANGED'],
  summary: 'Replaces the permissions of a role. The change is effective immediately.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RoleUpdateRequestSchema),
  handle: async (message, call) => {
    const role = readRole(message)
    checkPermission(call, 'role.update', role.namespace)
    await call.context.access().roles.update(role, createAttribution(call.request))
    return undefined
  },
})

const list = queueRoute({
  path: '/v1/roles.list',
  permission: 'role.list',
  summary: 'Lists the roles of a namespace in the order of their ids, starting at the pivot.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RolesListRequestSchema),
  response: createCodec(RolesListResponseSchema),
  handle: async (message, call) => {
    const page = readPage(message)
    const namespace = readListNamespace(message.namespace)
    checkPermission(call, 'role.list', namespace)
    const roles = await call.context.access().roles.list({ ...page, namespace })
    const items = roles.map(({ id, namespace, name, permissions, createdAt }) =>
      create(RoleSchema, {
        id,
        namespace,
        name,
        permissions: [...permissions],
        createdAt: toTimestamp(createdAt),
      }),
    )
    return create(RolesListResponseSchema, { items })
  },
})

const delete_ = queueRoute({
  path: '/v1/roles.delete',
  permission: 'role.delete',
  errors: ['NAMESPACE_NOT_FOUND', 'ROLE_NOT_FOUND', 'ROLE_STANDARD', 'ROLE_IN_USE', 'ACCESS_CHANGED'],
  summary: 'Deletes a role that has no bindings.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RolesDeleteRequestSchema),
  handle: async ({ namespace, name }, call) => {
    checkRoleNamespace(namespace)
    checkRoleName('name', name)
    checkPermission(call, 'role.delete', namespace)
    await call.context.access().roles.delete({ namespace, name }, createAttribution(call.request))
    return undefined
  },
})

export const roleRoutes = [create_, update, list, delete_]

function readRole(message: Readonly<{ namespace: string; name: string; permissions: readonly string[] }>) {
  const { namespace, name } = message
  checkRoleNamespace(namespace)
  checkRoleName('name', name)
  return { namespace, name, permissions: readPermissions(message.permissions) }
}
