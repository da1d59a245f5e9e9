import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { takeTurn } from '../../../turns.ts'
import type { BodyReader } from '../../http/bodies/body-reader.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import {
  type StorageItem,
  StorageItemSchema,
  type StorageItemsImportRequest,
  StorageItemsImportRequestSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { parseJsonBody, type Reader, toMessage } from '../protocol/codec.ts'
import { createBadRequest, createContentError } from '../protocol/fault.ts'
import { itemsPerPart } from './storage-items-response.ts'

/**
 * The contract has no limit on the items of an import. 64 MB of empty items would become tens of millions of
 * objects, more than fit in memory, so items are counted before they are decoded.
 */
export const importItemsMax = 100_000

/** For the body thread. */
export const importMessageReader: BodyReader<Uint8Array> = {
  name: 'storage.import',
  read: (bytes) => toBinary(StorageItemsImportRequestSchema, readJson(bytes)),
}

export const importBody: Reader<StorageItemsImportRequest> & {
  desc: typeof StorageItemsImportRequestSchema
} = {
  desc: StorageItemsImportRequestSchema,
  read: (bytes, format) => (format === 'json' ? readJson(bytes) : readProtobuf(bytes)),
  toProtobuf: importMessageReader,
}

function readJson(bytes: Buffer): StorageItemsImportRequest {
  const json = parseJsonBody(bytes)
  const given = (json as { items?: unknown } | null)?.items
  if (!Array.isArray(given)) return toMessage(StorageItemsImportRequestSchema, json)
  checkCount(given.length)
  const payloads = given.map(takePayload)
  const message = toMessage(StorageItemsImportRequestSchema, json)
  for (const [index, item] of message.items.entries()) item.payload = payloads[index] ?? item.payload
  return message
}

/** Decodes a payload here: Node does it many times faster than the library, which reads it as empty. */
function takePayload(item: unknown, index: number): Uint8Array | undefined {
  if (typeof item !== 'object' || item === null) return undefined
  const fields = item as Record<string, unknown>
  const { payload } = fields
  if (typeof payload !== 'string') return undefined
  const bytes = decodeBase64(payload)
  if (bytes === undefined) {
    throw createContentError(
      `the JSON body does not match the message: items[${index}].payload is not base64`,
    )
  }
  fields.payload = ''
  return bytes
}

/** The fields of the message, by number. */
const field = { queueName: 1, partition: 2, items: 3 } as const

async function readProtobuf(bytes: Buffer): Promise<StorageItemsImportRequest> {
  try {
    return await readFields(new BinaryReader(bytes))
  } catch (error) {
    if (error instanceof Error && error.name === 'Fault') throw error
    throw createContentError('the body is not a valid protobuf message', error)
  }
}

async function readFields(reader: BinaryReader): Promise<StorageItemsImportRequest> {
  const message = create(StorageItemsImportRequestSchema)
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    if (number === field.queueName && wireType === WireType.LengthDelimited) {
      message.queueName = reader.string(true)
    } else if (number === field.partition && wireType === WireType.Varint) message.partition = reader.int32()
    else if (number === field.items && wireType === WireType.LengthDelimited) {
      checkCount(message.items.length + 1)
      message.items.push(readItem(reader.bytes()))
      if (message.items.length % itemsPerPart === 0) await takeTurn()
    } else reader.skip(wireType, number)
  }
  return message
}

function readItem(bytes: Uint8Array): StorageItem {
  return fromBinary(StorageItemSchema, bytes, { readUnknownFields: false })
}

function checkCount(count: number): void {
  if (count > importItemsMax) {
    throw createBadRequest(`items is invalid; cannot be more than ${importItemsMax} in one request`)
  }
}
