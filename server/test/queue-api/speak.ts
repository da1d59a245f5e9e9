/** Speaks the Queue API over HTTP in either format. Tests write JSON; in protobuf it is turned into the message that it stands for. */
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
// biome-ignore lint/suspicious/noExplicitAny: tests look at the fields they expect, wherever they are
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
}

export const contentTypes = { json: 'application/json', protobuf: 'application/protobuf' } as const

export type Speaker = Readonly<{
  format: Format
  /** Whatever comes back. */
  ask(method: string, body: JsonObject, options?: AskOptions): Promise<Answer>
  /** The body of the answer, which must be 200. */
  call(method: string, body: JsonObject, options?: AskOptions): Promise<Body>
  /** The message of the answer, which must have this status. */
  refused(method: string, body: JsonObject, status?: number, options?: AskOptions): Promise<string>
}>
export type AskOptions = Readonly<{ headers?: Record<string, string>; signal?: AbortSignal }>

export function speaker(url: () => string, format: Format): Speaker {
  const ask: Speaker['ask'] = async (method, body, { headers = {}, signal } = {}) => {
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
    return { status, statusText, headers: response.headers, body: bodyOf(desc, bytes, format) }
  }
  return {
    format,
    ask,
    call: async (method, body, options) => {
      const answer = await ask(method, body, options)
      if (answer.status !== 200) throw new Error(`${method}: ${answer.status} ${answer.body.message}`)
      return answer.body
    },
    refused: async (method, body, status = 400, options = {}) => {
      const answer = await ask(method, body, options)
      if (answer.status !== status) {
        throw new Error(`${method}: expected ${status}, got ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      return answer.body.message
    },
  }
}

function bodyOf(desc: DescMessage, bytes: Uint8Array, format: Format): Body {
  if (format === 'json') return JSON.parse(new TextDecoder().decode(bytes))
  const message = bytes.length === 0 ? create(desc) : fromBinary(desc, bytes)
  return toJson(desc, message, { useProtoFieldName: true })
}
