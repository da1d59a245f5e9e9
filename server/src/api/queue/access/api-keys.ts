import { create } from '@bufbuild/protobuf'
import type { ApiKey } from '../../../core/access/records.ts'
import { createAttribution } from '../../http/attribution.ts'
import { checkNoNul } from '../checks/names.ts'
import {
  APIKeyCreateRequestSchema,
  APIKeyCreateResponseSchema,
  type APIKeyMetadata,
  APIKeyMetadataSchema,
  APIKeysDeleteRequestSchema,
  APIKeysListRequestSchema,
  APIKeysListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import { toInstant, toTimestamp } from '../protocol/times.ts'
import { checkGiven, checkKeyTag, checkText, readPage } from './checks.ts'

const create_ = queueRoute({
  path: '/v1/apikeys.create',
  permission: 'apikey.create',
  errors: ['USER_NOT_FOUND', 'ACCESS_CHANGED'],
  summary: 'Creates an API key of a user. The key is shown in this response only.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(APIKeyCreateRequestSchema),
  response: createCodec(APIKeyCreateResponseSchema),
  handle: async ({ userId, name, namespaceScope, expiresAt, keyTag }, call) => {
    checkGiven('user_id', userId)
    checkNoNul('user_id', userId)
    checkText('name', name, 128)
    checkText('namespace_scope', namespaceScope, 256)
    checkKeyTag('key_tag', keyTag)
    const key = {
      userId,
      name,
      scope: namespaceScope === '' ? null : namespaceScope,
      expiresAt: toInstant(expiresAt),
      tag: keyTag,
    }
    const created = await call.context.access().apiKeys.create(key, createAttribution(call.request))
    return create(APIKeyCreateResponseSchema, created)
  },
})

const list = queueRoute({
  path: '/v1/apikeys.list',
  permission: 'apikey.list',
  summary: 'Lists API keys, of one user or of all, in the order of their ids, starting at the pivot.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(APIKeysListRequestSchema),
  response: createCodec(APIKeysListResponseSchema),
  handle: async (message, { context }) => {
    const { userId } = message
    checkNoNul('user_id', userId)
    const page = { ...readPage(message), ...(userId !== '' && { userId }) }
    const keys = await context.access().apiKeys.list(page)
    return create(APIKeysListResponseSchema, { items: keys.map(toMetadata) })
  },
})

const delete_ = queueRoute({
  path: '/v1/apikeys.delete',
  permission: 'apikey.delete',
  errors: ['API_KEY_NOT_FOUND', 'ACCESS_CHANGED'],
  summary: 'Revokes an API key. It stops working immediately on all servers.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(APIKeysDeleteRequestSchema),
  handle: async ({ id }, call) => {
    checkNoNul('id', id)
    await call.context.access().apiKeys.delete(id, createAttribution(call.request))
    return undefined
  },
})

export const apiKeyRoutes = [create_, list, delete_]

function toMetadata(key: ApiKey): APIKeyMetadata {
  const { id, userId, scope, name, prefix, expiresAt, lastUsedAt, createdAt } = key
  return create(APIKeyMetadataSchema, {
    id,
    userId,
    namespaceScope: scope ?? '',
    name,
    prefix,
    createdAt: toTimestamp(createdAt),
    ...(expiresAt !== null && { expiresAt: toTimestamp(expiresAt) }),
    ...(lastUsedAt !== null && { lastUsedAt: toTimestamp(lastUsedAt) }),
  })
}
