/**
 * Reads the body of queue.produce directly into the items of the engine, without a message object per item:
 * this is the most frequent body.
 *
 * In JSON only the fields and types that almost all clients send are read here. Any other body (times, other
 * types, unknown or repeated fields) is read by the descriptor, which decides what is valid and reports
 * errors.
 */
import { isUtf8 } from 'node:buffer'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { Instant } from '../../../core/time/instant.ts'
import { KnownError } from '../../../errors.ts'
import type { BodyReader } from '../../http/bodies/body-reader.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import {
  type QueueProduceRequest,
  QueueProduceRequestSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { type Codec, checkBase64, parseJsonBody, toMessage } from '../protocol/codec.ts'
import { createContentError } from '../protocol/fault.ts'
import { toInstant } from '../protocol/times.ts'

/** `availableAt` is the given time; the handler decides whether the item is scheduled. */
export type ProducedItem = {
  payload: Uint8Array
  kind: string
  encoding: string
  reference: string
  availableAt: Instant | null
}
export type ProduceBody = {
  queueName: string
  requestTimeout: string
  items: ProducedItem[]
  itemCount: number
}

/**
 * Further items are counted but not kept, so that a body of empty items does not become millions of objects.
 */
const itemsKeptMax = 65_536

/** For the body thread. Items that are not kept become empty items, which are counted. */
export const produceMessageReader: BodyReader<Uint8Array> = {
  name: 'queue.produce',
  read: (bytes) => {
    const json = parseJsonBody(bytes)
    const count = countItems(json)
    const isKept = count <= itemsKeptMax
    if (isKept) checkBase64(json, 'bytes')
    const kept = isKept ? json : { ...(json as object), items: [] }
    const message = toMessage(QueueProduceRequestSchema, kept)
    const binary = toBinary(QueueProduceRequestSchema, message)
    return isKept ? binary : Buffer.concat([binary, Buffer.alloc(2 * count, emptyItem)])
  },
}

/** The field of an item, and its length. */
const emptyItem = Buffer.from([0x1a, 0x00])

function countItems(json: unknown): number {
  const items = (json as { items?: unknown } | null)?.items
  return Array.isArray(items) ? items.length : 0
}

export const produceBody: Pick<Codec<ProduceBody>, 'read'> & {
  desc: typeof QueueProduceRequestSchema
  toProtobuf: BodyReader<Uint8Array>
} = {
  desc: QueueProduceRequestSchema,
  read: (bytes, format) => (format === 'json' ? readJson(bytes) : readProtobuf(bytes)),
  toProtobuf: produceMessageReader,
}

function readJson(bytes: Buffer): ProduceBody {
  const json = parseJsonBody(bytes)
  const body = readPlainBody(json)
  if (body !== undefined) return body
  checkBase64(json, 'bytes')
  return toProduceBody(toMessage(QueueProduceRequestSchema, json))
}

function toProduceBody({ queueName, requestTimeout, items }: QueueProduceRequest): ProduceBody {
  return {
    queueName,
    requestTimeout,
    itemCount: items.length,
    items: items.map(({ bytes, utf8, kind, encoding, reference, enqueueAt }) => ({
      payload: selectPayload(bytes, Buffer.from(utf8)),
      kind,
      encoding,
      reference,
      availableAt: toInstant(enqueueAt),
    })),
  }
}

/** Returns undefined for a body that needs the descriptor. */
function readPlainBody(json: unknown): ProduceBody | undefined {
  if (!isObject(json)) return undefined
  const body: ProduceBody = { queueName: '', requestTimeout: '', items: noItems, itemCount: 0 }
  for (const key in json) {
    const value = json[key]
    if (key === 'queue_name' && isPlainText(value)) body.queueName = value
    else if (key === 'request_timeout' && isPlainText(value)) body.requestTimeout = value
    else if (key === 'items' && Array.isArray(value)) {
      const items = readPlainItems(value)
      if (items === undefined) return undefined
      body.items = items
      body.itemCount = items.length
    } else return undefined
  }
  return body
}

function readPlainItems(values: readonly unknown[]): ProducedItem[] | undefined {
  const items: ProducedItem[] = []
  for (const value of values) {
    const item = readPlainItem(value)
    if (item === undefined) return undefined
    items.push(item)
  }
  return items
}

function readPlainItem(json: unknown): ProducedItem | undefined {
  if (!isObject(json)) return undefined
  const item: ProducedItem = { payload: noBytes, kind: '', encoding: '', reference: '', availableAt: null }
  let text = ''
  for (const key in json) {
    const value = json[key]
    if (!isPlainText(value)) return undefined
    switch (key) {
      case 'bytes': {
        const bytes = decodeBase64(value)
        if (bytes === undefined) return undefined
        item.payload = bytes
        break
      }
      case 'utf8':
        text = value
        break
      case 'kind':
      case 'encoding':
      case 'reference':
        item[key] = value
        break
      default:
        return undefined
    }
  }
  if (text !== '') item.payload = selectPayload(item.payload, Buffer.from(text))
  return item
}

function isPlainText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed()
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readProtobuf(bytes: Buffer): ProduceBody {
  try {
    return readFields(new BinaryReader(bytes))
  } catch (error) {
    if (error instanceof KnownError) throw error
    throw createContentError('the body is not a valid protobuf message', error)
  }
}

function readFields(reader: BinaryReader): ProduceBody {
  const body: ProduceBody = { queueName: '', requestTimeout: '', items: [], itemCount: 0 }
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag()
    if (wireType !== WireType.LengthDelimited) reader.skip(wireType, field)
    else if (field === 1) body.queueName = reader.string(true)
    else if (field === 2) body.requestTimeout = reader.string(true)
    else if (field === 3) {
      if (++body.itemCount > itemsKeptMax) reader.skip(wireType, field)
      else body.items.push(readItem(reader))
    } else reader.skip(wireType, field)
  }
  return body
}

/** Field numbers start at 1. */
const unknownField = 0

function readItem(reader: BinaryReader): ProducedItem {
  const item: ProducedItem = { payload: noBytes, kind: '', encoding: '', reference: '', availableAt: null }
  const length = reader.uint32()
  const end = reader.pos + length
  if (end > reader.len) throw new RangeError('an item is longer than the body')
  let text = noBytes
  while (reader.pos < end) {
    const [field, wireType] = reader.tag()
    switch (wireType === WireType.LengthDelimited ? field : unknownField) {
      case 1:
        item.encoding = reader.string(true)
        break
      case 2:
        item.kind = reader.string(true)
        break
      case 3:
        item.reference = reader.string(true)
        break
      case 4:
        item.availableAt = toInstant(fromBinary(TimestampSchema, reader.bytes()))
        break
      case 5:
        item.payload = reader.bytes()
        break
      case 6:
        text = checkUtf8(reader.bytes())
        break
      default:
        reader.skip(wireType, field)
    }
  }
  if (reader.pos !== end) throw new RangeError('a field is longer than its item')
  item.payload = selectPayload(item.payload, text)
  return item
}

function selectPayload(bytes: Uint8Array, text: Uint8Array): Uint8Array {
  if (bytes.length > 0 && text.length > 0) {
    throw createContentError('an item has both "bytes" and "utf8"; send only one of them')
  }
  return bytes.length > 0 ? bytes : text
}

/** A text that is stored as bytes is checked but not decoded. */
function checkUtf8(bytes: Uint8Array): Uint8Array {
  if (!isUtf8(bytes)) throw new Error('a text is not UTF-8')
  return bytes
}

const noBytes: Uint8Array = new Uint8Array()
const noItems: ProducedItem[] = []
