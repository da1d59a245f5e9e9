import type { DescMessage } from '@bufbuild/protobuf'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type TObject, Type } from 'typebox'
import type { Engine } from '../../../engine/engine.ts'
import { type ErrorCode, KnownError } from '../../../errors.ts'
import { threadBytesMin } from '../../body-thread/body-thread.ts'
import type { ApiContext } from '../../context.ts'
import { sendAs } from '../../http/answers/send-as.ts'
import { waitForNextTick } from '../../http/bodies/next-tick.ts'
import type { AnswerKind } from '../../http/connections/capacity.ts'
import type { Permission } from '../../http/permission.ts'
import type { Route } from '../../http/route.ts'
import { sendParts } from '../../http/wire/json-parts.ts'
import { ReplySchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import type { Reader, Writer } from './codec.ts'
import { queueApi } from './dialect.ts'
import { contentTypes, type Format, parseFormat } from './format.ts'
import { toJsonSchema } from './openapi-schema.ts'

/** The context of a call, in addition to its message. */
export type Call = Readonly<{
  engine: Engine
  context: ApiContext
  request: FastifyRequest
  reply: FastifyReply
}>

type Row<Req, Res> = Readonly<{
  path: string
  permission: Permission
  errors?: readonly ErrorCode[]
  summary: string
  bodyBytesMax: number
  isHot?: boolean
  answerKind?: AnswerKind
  slowMs?: number
  /** Headers of this call, for OpenAPI. */
  headers?: TObject
  request: Reader<Req> & { desc: DescMessage }
  handle: (message: Req, call: Call) => Promise<Res>
}> &
  /** Without a response the answer is `{"code":200}`. */
  ([Res] extends [undefined] ? { response?: undefined } : { response: Writer<Res> & { desc: DescMessage } })

/** Creates a row of the route table that reads and answers in both formats. */
export function queueRoute<Req, Res = undefined>(row: Row<Req, Res>): Route {
  const { path, permission, summary, bodyBytesMax, handle } = row
  const response = row.response as (Writer<Res> & { desc: DescMessage }) | undefined
  return {
    method: 'POST',
    path,
    operationId: toOperationId(path),
    permission,
    errors: [...errorsOfCalls, ...(row.errors ?? [])],
    summary,
    tag: 'queue-api',
    dialect: queueApi,
    bodyBytesMax,
    ...(row.isHot !== undefined && { isHot: row.isHot }),
    ...(row.slowMs !== undefined && { slowMs: row.slowMs }),
    ...(row.answerKind !== undefined && { answerKind: row.answerKind }),
    openapi: {
      ...(row.headers !== undefined && { headers: row.headers }),
      body: describeBothFormats(
        row.request.desc,
        'Unknown fields are refused in JSON and ignored in protobuf.',
      ),
    },
    schema: {
      body: toJsonSchema(row.request.desc),
      response: { 200: describeBothFormats(response?.desc ?? ReplySchema) },
    },
    handler: async (request, reply, context) => {
      const read = readMessage(row.request, request, context)
      const message = read instanceof Promise ? await read : read
      await waitForNextTick()
      const call = { engine: context.engine(), context, request, reply }
      const result = await handle(message, call).catch(translateShutdown)
      const format = parseFormat(request.headers.accept) ?? 'json'
      const body = response === undefined ? okReplies[format] : response.write(result, format)
      return typeof body === 'string' || body instanceof Uint8Array
        ? sendAs(reply, contentTypes[format], body)
        : sendParts(reply, contentTypes[format], body)
    },
  }
}

/** Errors of all calls to a queue. The protocol answers most of them with the same status. */
const errorsOfCalls: readonly ErrorCode[] = [
  'CONTENT_UNREADABLE',
  'QUEUE_NOT_FOUND',
  'QUEUE_OVERLOADED',
  'QUEUE_SHUTTING_DOWN',
  'CALL_TIMEOUT',
]

/** `/v1/storage/items.list` → `storageItemsList` */
function toOperationId(path: string): string {
  return path.slice('/v1/'.length).replaceAll(/[./](\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** A large JSON body is converted to protobuf by the body thread, and then read like every protobuf body. */
function readMessage<Req>(
  reader: Reader<Req>,
  request: FastifyRequest,
  context: ApiContext,
): Req | Promise<Req> {
  const bytes = request.body as Buffer
  const format = parseFormat(request.headers['content-type']) ?? 'json'
  const { toProtobuf } = reader
  if (format === 'protobuf' || toProtobuf === undefined || bytes.length < threadBytesMin) {
    return reader.read(bytes, format)
  }
  return context.bodyThread
    .read(toProtobuf, bytes, { now: context.clock.now() })
    .then((converted) =>
      reader.read(Buffer.from(converted.buffer, converted.byteOffset, converted.byteLength), 'protobuf'),
    )
}

const okReplies: Readonly<Record<Format, string | Uint8Array>> = {
  json: '{"code":200}',
  protobuf: Buffer.from([0x08, 0xc8, 0x01]),
}

/** The contract has a separate message for requests that a shutdown interrupts inside a queue. */
function translateShutdown(error: unknown): never {
  if (error instanceof KnownError && error.code === 'SHUTTING_DOWN') {
    throw new KnownError('QUEUE_SHUTTING_DOWN', error.message, error)
  }
  throw error
}

function describeBothFormats(desc: DescMessage, description = 'Fields with their zero value are omitted.') {
  return {
    description,
    content: {
      [contentTypes.json]: { schema: toJsonSchema(desc) },
      [contentTypes.protobuf]: { schema: Type.String({ contentMediaType: contentTypes.protobuf }) },
    },
  }
}
