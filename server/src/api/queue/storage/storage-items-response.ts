/** Writes the items of storage/items.list, scheduled.list and items.import part by part. */
import { create, toBinary, toJson } from '@bufbuild/protobuf'
import { largeBytesMin, type Part, writeBase64 } from '../../http/wire/json-parts.ts'
import {
  type StorageItem,
  StorageItemSchema,
  type StorageItemsImportResponseSchema,
  type StorageItemsListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import type { Format } from '../protocol/format.ts'

/** The server answers other requests after this many items. */
export const itemsPerPart = 500

export interface ItemsWriter {
  /** Writes a few items, so that their payloads need not be kept. */
  add(items: readonly StorageItem[]): void
  end(): string | Uint8Array | Iterable<Part>
}

/** The answers of a list and of an import have the items in fields of different numbers. */
type ItemsSchema = typeof StorageItemsListResponseSchema | typeof StorageItemsImportResponseSchema

export function createItemsWriter(format: Format, schema: ItemsSchema): ItemsWriter {
  return format === 'json' ? createJsonWriter() : createProtobufWriter(schema)
}

function createJsonWriter(): ItemsWriter {
  const written: (string | LargeItem)[] = []
  let length = 0
  return {
    add: (items) => {
      for (const item of items) {
        const isLarge = item.payload.length >= largeBytesMin
        const text = isLarge ? writeHead(item) : writeItemJson(item)
        written.push(isLarge ? { head: text, payload: item.payload } : text)
        length += isLarge ? item.payload.length : text.length
      }
    },
    end: () => {
      if (length >= largeBytesMin) return joinItems(written)
      return written.length === 0 ? '{}' : `{"items":[${written.join(',')}]}`
    },
  }
}

/** An item whose payload is encoded when it is sent. */
type LargeItem = Readonly<{ head: string; payload: Uint8Array }>

function* joinItems(items: readonly (string | LargeItem)[]): Generator<Part> {
  yield '{"items":['
  for (const [index, item] of items.entries()) {
    if (index > 0) yield ','
    if (typeof item === 'string') yield item
    else {
      yield `${item.head}"payload":"`
      yield* writeBase64(item.payload)
      yield '"}'
    }
  }
  yield ']}'
}

/** Node encodes a payload many times faster than the library. */
function writeItemJson(item: StorageItem): string {
  const { payload } = item
  if (payload.length === 0) return writeFields(item)
  const base64 = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64')
  return `${writeHead(item)}"payload":"${base64}"}`
}

/** The text before the payload, which is the last field. */
function writeHead(item: StorageItem): string {
  const text = writeFields(item)
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}`
}

function writeFields(item: StorageItem): string {
  const head = create(StorageItemSchema, { ...item, payload: noBytes })
  return JSON.stringify(toJson(StorageItemSchema, head, { useProtoFieldName: true }))
}

/** Encoded messages that follow each other are one message with the items of all. */
function createProtobufWriter(schema: ItemsSchema): ItemsWriter {
  const parts: Uint8Array[] = []
  return {
    add: (items) => {
      const part = create<ItemsSchema>(schema, { items: [...items] })
      parts.push(toBinary<ItemsSchema>(schema, part, { writeUnknownFields: false }))
    },
    end: () => Buffer.concat(parts),
  }
}

const noBytes = new Uint8Array()
