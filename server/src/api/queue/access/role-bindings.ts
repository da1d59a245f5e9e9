import { create } from '@bufbuild/protobuf'
import { createAttribution } from '../../http/attribution.ts'
import { checkNoNul } from '../checks/names.ts'
import {
  RoleBindingCreateRequestSchema,
  RoleBindingCreateResponseSchema,
  RoleBindingDeleteRequestSchema,
  RoleBindingSchema,
  RoleBindingsListRequestSchema,
  RoleBindingsListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toTimestamp } from '../protocol/times.ts'
import {
  checkPermission,
  checkRoleName,
  checkRoleNamespace,
  checkUserId,
  readListNamespace,
  readPage,
} from './checks.ts'

const create_ = queueRoute({
  path: '/v1/rolebindings.create',
  permission: 'rolebinding.create',
  errors: [
    'NAMESPACE_NOT_FOUND',
    'ROLE_NOT_FOUND',
    'USER_NOT_FOUND',
    'ROLE_BINDING_EXISTS',
    'ACCESS_CHANGED',
  ],
  summary: 'Gives a user the permissions of a role in a namespace; in _system: in all namespaces.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RoleBindingCreateRequestSchema),
  response: createCodec(RoleBindingCreateResponseSchema),
  handle: async ({ namespace, roleName, userId }, call) => {
    checkRoleNamespace(namespace)
    checkRoleName('role_name', roleName)
    checkUserId(userId)
    checkPermission(call, 'rolebinding.create', namespace)
    const binding = { namespace, roleName, userId }
    const id = await call.context.access().roleBindings.create(binding, createAttribution(call.request))
    return create(RoleBindingCreateResponseSchema, { id })
  },
})

const list = queueRoute({
  path: '/v1/rolebindings.list',
  permission: 'rolebinding.list',
  summary: 'Lists the role bindings of a namespace in the order of their ids, starting at the pivot.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RoleBindingsListRequestSchema),
  response: createCodec(RoleBindingsListResponseSchema),
  handle: async (message, call) => {
    const page = readPage(message)
    const namespace = readListNamespace(message.namespace)
    const { userIdFilter: userId } = message
    checkNoNul('user_id_filter', userId)
    checkPermission(call, 'rolebinding.list', namespace)
    const query = { ...page, namespace, ...(userId !== '' && { userId }) }
    const bindings = await call.context.access().roleBindings.list(query)
    const items = bindings.map(({ createdAt, ...binding }) =>
      create(RoleBindingSchema, { ...binding, createdAt: toTimestamp(createdAt) }),
    )
    return create(RoleBindingsListResponseSchema, { items })
  },
})

const delete_ = queueRoute({
  path: '/v1/rolebindings.delete',
  permission: 'rolebinding.delete',
  errors: ['ROLE_NOT_FOUND', 'ROLE_BINDING_NOT_FOUND', 'ACCESS_CHANGED'],
  summary: 'Takes a role from a user. The change is effective immediately.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(RoleBindingDeleteRequestSchema),
  handle: async (message, call) => {
    const { roleName, userId } = message
    const namespace = readListNamespace(message.namespace)
    checkRoleName('role_name', roleName)
    checkUserId(userId)
    checkPermission(call, 'rolebinding.delete', namespace)
    const binding = { namespace, roleName, userId }
    await call.context.access().roleBindings.delete(binding, createAttribution(call.request))
    return undefined
  },
})

export const roleBindingRoutes = [create_, list, delete_]
