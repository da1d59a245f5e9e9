import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { StorageItemsImportRequestSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { checkBase64, createCodec, parseJsonBody, toMessage } from '../protocol/codec.ts'
import { badRequest } from '../protocol/fault.ts'
import type { Format } from '../protocol/format.ts'

const codec = createCodec(StorageItemsImportRequestSchema)

/**
 * The contract has no limit on the items of an import. 64 MB of empty items would become tens of millions of
 * objects, more than fit in memory, so items are counted before they are decoded.
 */
const itemsMax = 1_000_000

export const importBody: typeof codec = {
  ...codec,
  read: (bytes, format) => {
    if (bytes.length > itemsMax && hasTooMany(bytes, format)) {
      throw badRequest(`items is invalid; cannot be more than ${itemsMax} in one request`)
    }
    if (format === 'protobuf') return codec.read(bytes, format)
    const json = parseJsonBody(bytes)
    checkBase64(json, 'payload')
    return toMessage(StorageItemsImportRequestSchema, json)
  },
}

function hasTooMany(bytes: Buffer, format: Format): boolean {
  return (format === 'json' ? countBraces(bytes) : countFields(bytes)) > itemsMax + 1
}

function countBraces(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(0x7b); at !== -1 && count <= itemsMax + 1; at = bytes.indexOf(0x7b, at + 1))
    count++
  return count
}

function countFields(bytes: Buffer): number {
  let count = 0
  try {
    const reader = new BinaryReader(bytes)
    for (; reader.pos < reader.len && count <= itemsMax + 1; count++) {
      const [field, wireType] = reader.tag()
      if (wireType === WireType.LengthDelimited) {
        const length = reader.uint32()
        reader.pos += length
      } else reader.skip(wireType, field)
    }
  } catch {
    // The body is invalid. The decoder reports the error with a better message.
  }
  return count
}
