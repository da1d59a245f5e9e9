/** Writes the items of storage/items.list, scheduled.list and items.import part by part. */
import { create, toBinary, toJson } from '@bufbuild/protobuf'
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
  end(): string | Uint8Array
}

/** The answers of a list and of an import have the items in fields of different numbers. */
type ItemsSchema = typeof StorageItemsListResponseSchema | typeof StorageItemsImportResponseSchema

export function createItemsWriter(format: Format, schema: ItemsSchema): ItemsWriter {
  return format === 'json' ? createJsonWriter() : createProtobufWriter(schema)
}

function createJsonWriter(): ItemsWriter {
  const texts: string[] = []
  return {
    add: (items) => {
      for (const item of items) texts.push(writeItemJson(item))
    },
    end: () => (texts.length === 0 ? '{}' : `{"items":[${texts.join(',')}]}`),
  }
}

/** The payload is the last field. Node encodes it many times faster than the library. */
function writeItemJson(item: StorageItem): string {
  const { payload } = item
  const head = create(StorageItemSchema, { ...item, payload: noBytes })
  const text = JSON.stringify(toJson(StorageItemSchema, head, { useProtoFieldName: true }))
  if (payload.length === 0) return text
  const base64 = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64')
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}"payload":"${base64}"}`
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
