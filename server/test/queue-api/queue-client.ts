/**
 * A client of the Queue API in both formats. Tests write JSON, which is converted to messages for protobuf.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import * as messages from '../../src/api/queue/generated/redrive/queue/v1/queue_pb.ts'

export type Format = 'json' | 'protobuf'
// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
export type Body = any
export type Answer = Readonly<{ status: number; statusText: string; headers: Headers; body: Body }>

export const requests: Readonly<Record<string, readonly [DescMessage, DescMessage]>> = {
  'queue.produce': [messages.QueueProduceRequestSchema, messages.ReplySchema],
  'queue.lease': [messages.QueueLeaseRequestSchema, messages.QueueLeaseResponseSchema],
  'queue.complete': [messages.QueueCompleteRequestSchema, messages.ReplySchema],
  'queue.retry': [messages.QueueRetryRequestSchema, messages.ReplySchema],
  'queue.clear': [messages.QueueClearRequestSchema, messages.ReplySchema],
  'queue.reload': [messages.QueueReloadRequestSchema, messages.ReplySchema],
  'queue.stats': [messages.QueueStatsRequestSchema, messages.QueueStatsResponseSchema],
  'queues.create': [messages.QueueInfoSchema, messages.ReplySchema],
  'queues.update': [messages.QueueInfoSchema, messages.ReplySchema],
  'queues.list': [messages.QueuesListRequestSchema, messages.QueuesListResponseSchema],
  'queues.info': [messages.QueuesInfoRequestSchema, messages.QueueInfoSchema],
  'queues.delete': [messages.QueuesDeleteRequestSchema, messages.ReplySchema],
  'storage/items.list': [messages.StorageItemsListRequestSchema, messages.StorageItemsListResponseSchema],
  'storage/scheduled.list': [messages.StorageItemsListRequestSchema, messages.StorageItemsListResponseSchema],
  'storage/items.import': [
    messages.StorageItemsImportRequestSchema,
    messages.StorageItemsImportResponseSchema,
  ],
  'storage/items.delete': [messages.StorageItemsDeleteRequestSchema, messages.ReplySchema],
  'namespaces.create': [messages.NamespaceInfoSchema, messages.ReplySchema],
  'namespaces.update': [messages.NamespaceInfoSchema, messages.ReplySchema],
  'namespaces.list': [messages.NamespacesListRequestSchema, messages.NamespacesListResponseSchema],
  'namespaces.delete': [messages.NamespacesDeleteRequestSchema, messages.ReplySchema],
  'users.create': [messages.UserCreateRequestSchema, messages.UserCreateResponseSchema],
  'users.list': [messages.UsersListRequestSchema, messages.UsersListResponseSchema],
  'users.delete': [messages.UsersDeleteRequestSchema, messages.ReplySchema],
  'apikeys.create': [messages.APIKeyCreateRequestSchema, messages.APIKeyCreateResponseSchema],
  'apikeys.list': [messages.APIKeysListRequestSchema, messages.APIKeysListResponseSchema],
  'apikeys.delete': [messages.APIKeysDeleteRequestSchema, messages.ReplySchema],
  'roles.create': [messages.RoleCreateRequestSchema, messages.RoleCreateResponseSchema],
  'roles.update': [messages.RoleUpdateRequestSchema, messages.ReplySchema],
  'roles.list': [messages.RolesListRequestSchema, messages.RolesListResponseSchema],
  'roles.delete': [messages.RolesDeleteRequestSchema, messages.ReplySchema],
  'rolebindings.create': [messages.RoleBindingCreateRequestSchema, messages.RoleBindingCreateResponseSchema],
  'rolebindings.list': [messages.RoleBindingsListRequestSchema, messages.RoleBindingsListResponseSchema],
  'rolebindings.delete': [messages.RoleBindingDeleteRequestSchema, messages.ReplySchema],
}

export const contentTypes = { json: 'application/json', protobuf: 'application/protobuf' } as const

export type QueueClient = Readonly<{
  format: Format
  /** Returns any answer. */
  send(method: string, body: JsonObject, options?: SendOptions): Promise<Answer>
  /** Returns the body of an answer that must have status 200. */
  call(method: string, body: JsonObject, options?: SendOptions): Promise<Body>
  /** Returns the error message of an answer that must have this status. */
  callRefused(method: string, body: JsonObject, status?: number, options?: SendOptions): Promise<string>
}>
export type SendOptions = Readonly<{ headers?: Record<string, string>; signal?: AbortSignal }>

export function createQueueClient(url: () => string, format: Format): QueueClient {
  const send: QueueClient['send'] = async (method, body, { headers = {}, signal } = {}) => {
    const [requestDesc, replyDesc] = requests[method] ?? [messages.ReplySchema, messages.ReplySchema]
    const response = await fetch(`${url()}/v1/${method}`, {
      method: 'POST',
      headers: { 'content-type': contentTypes[format], accept: contentTypes[format], ...headers },
      body: format === 'json' ? JSON.stringify(body) : toBinary(requestDesc, fromJson(requestDesc, body)),
      ...(signal !== undefined && { signal }),
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const { status, statusText } = response
    const desc = status === 200 ? replyDesc : messages.ReplySchema
    return { status, statusText, headers: response.headers, body: decodeBody(desc, bytes, format) }
  }
  return {
    format,
    send,
    call: async (method, body, options) => {
      const answer = await send(method, body, options)
      if (answer.status !== 200) throw new Error(`${method}: ${answer.status} ${answer.body.message}`)
      return answer.body
    },
    callRefused: async (method, body, status = 400, options = {}) => {
      const answer = await send(method, body, options)
      if (answer.status !== status) {
        throw new Error(`${method}: expected ${status}, got ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      return answer.body.message
    },
  }
}

function decodeBody(desc: DescMessage, bytes: Uint8Array, format: Format): Body {
  if (format === 'json') return JSON.parse(new TextDecoder().decode(bytes))
  const message = bytes.length === 0 ? create(desc) : fromBinary(desc, bytes)
  return toJson(desc, message, { useProtoFieldName: true })
}
