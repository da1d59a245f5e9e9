import { create } from '@bufbuild/protobuf'
import type { Namespace } from '../../../core/access/records.ts'
import { createAttribution } from '../../http/attribution.ts'
import { checkNoNul } from '../checks/names.ts'
import {
  type NamespaceInfo,
  NamespaceInfoSchema,
  NamespacesDeleteRequestSchema,
  NamespacesListRequestSchema,
  NamespacesListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toTimestamp } from '../protocol/times.ts'
import { checkKeyTag, checkNamespaceGiven, checkNotReserved, readPage } from './checks.ts'

const create_ = queueRoute({
  path: '/v1/namespaces.create',
  permission: 'namespace.create',
  errors: ['NAMESPACE_EXISTS', 'ACCESS_CHANGED'],
  summary: 'Creates a namespace.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(NamespaceInfoSchema),
  handle: async (info, call) => {
    const namespace = readNamespace(info)
    checkNotReserved(namespace.name)
    await call.context.access().namespaces.create(namespace, createAttribution(call.request))
    return undefined
  },
})

const update = queueRoute({
  path: '/v1/namespaces.update',
  permission: 'namespace.update',
  errors: ['NAMESPACE_NOT_FOUND', 'ACCESS_CHANGED'],
  summary: 'Replaces the description and the key tag of a namespace.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(NamespaceInfoSchema),
  handle: async (info, call) => {
    await call.context.access().namespaces.update(readNamespace(info), createAttribution(call.request))
    return undefined
  },
})

const list = queueRoute({
  path: '/v1/namespaces.list',
  permission: 'namespace.list',
  summary: 'Lists the namespaces in byte order of their names, starting at the pivot.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(NamespacesListRequestSchema),
  response: createCodec(NamespacesListResponseSchema),
  handle: async (message, { context }) => {
    const namespaces = await context.access().namespaces.list(readPage(message))
    return create(NamespacesListResponseSchema, { items: namespaces.map(toInfo) })
  },
})

const delete_ = queueRoute({
  path: '/v1/namespaces.delete',
  permission: 'namespace.delete',
  errors: ['NAMESPACE_NOT_FOUND', 'NAMESPACE_IN_USE', 'ACCESS_CHANGED'],
  summary: 'Deletes a namespace that has no role bindings, roles and queues.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(NamespacesDeleteRequestSchema),
  handle: async ({ name }, call) => {
    checkNamespaceGiven(name)
    checkNotReserved(name)
    await call.context.access().namespaces.delete(name, createAttribution(call.request))
    return undefined
  },
})

export const namespaceRoutes = [create_, update, list, delete_]

function readNamespace({ name, description, apiKeyTag }: NamespaceInfo): Omit<Namespace, 'createdAt'> {
  checkNamespaceGiven(name)
  checkKeyTag('api_key_tag', apiKeyTag)
  checkNoNul('description', description)
  return { name, description, keyTag: apiKeyTag }
}

function toInfo({ name, description, keyTag, createdAt }: Namespace): NamespaceInfo {
  return create(NamespaceInfoSchema, {
    name,
    description,
    apiKeyTag: keyTag,
    createdAt: toTimestamp(createdAt),
  })
}
