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

/**
 * For the body thread. Converts some items at a time: the messages of 100,000 items need several times the
 * memory of their bytes. Messages that follow each other are one message with the items of all.
 */
export const importMessageReader: BodyReader<Uint8Array> = {
  name: 'storage.import',
  read: (bytes) => {
    const json = parseJsonBody(bytes)
    const items = getItems(json)
    if (items === undefined) return toBinary(StorageItemsImportRequestSchema, readItems(json, 0))
    const parts = [encodeItems({ ...(json as object), items: [] }, 0)]
    for (let from = 0; from < items.length; from += itemsPerPart) {
      const part = items.slice(from, from + itemsPerPart)
      parts.push(encodeItems({ items: part }, from))
      // Frees the values that were converted.
      items.fill(null, from, from + part.length)
    }
    return Buffer.concat(parts)
  },
}

export const importBody: Reader<StorageItemsImportRequest> & {
  desc: typeof StorageItemsImportRequestSchema
} = {
  desc: StorageItemsImportRequestSchema,
  read: (bytes, format) => {
    if (format !== 'json') return readProtobuf(bytes)
    return readItems(parseJsonBody(bytes), 0)
  },
  toProtobuf: importMessageReader,
}

/** Undefined if the body has no list of items. */
function getItems(json: unknown): unknown[] | undefined {
  const items = (json as { items?: unknown } | null)?.items
  if (!Array.isArray(items)) return undefined
  checkCount(items.length)
  return items
}

function encodeItems(json: object, from: number): Uint8Array {
  return toBinary(StorageItemsImportRequestSchema, readItems(json, from))
}

/** `from`: the position of the first item in the body. */
function readItems(json: unknown, from: number): StorageItemsImportRequest {
  const payloads = getItems(json)?.map((item, index) => takePayload(item, from + index)) ?? []
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
