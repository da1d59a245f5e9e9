import { create, fromBinary, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { StorageItemSchema, StorageItemsListResponseSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { createItemsWriter } from './storage-items-response.ts'

const items = [
  create(StorageItemSchema, { id: 'a', sourceId: 's', attempts: 3, payload: new Uint8Array([255, 0, 1]) }),
  create(StorageItemSchema, { id: 'b', isLeased: true, createdAt: { seconds: 5n, nanos: 7_000 } }),
  create(StorageItemSchema, { payload: new Uint8Array([1]) }),
  create(StorageItemSchema),
]
const whole = create(StorageItemsListResponseSchema, { items })

describe('the items of an answer', () => {
  it('items that are written in parts equal the message of the descriptor', () => {
    const json = createItemsWriter('json', StorageItemsListResponseSchema)
    const protobuf = createItemsWriter('protobuf', StorageItemsListResponseSchema)
    for (const writer of [json, protobuf]) for (const item of items) writer.add([item])
    expect(JSON.parse(String(json.end()))).toEqual(
      toJson(StorageItemsListResponseSchema, whole, { useProtoFieldName: true }),
    )
    expect(fromBinary(StorageItemsListResponseSchema, new Uint8Array(protobuf.end() as Uint8Array))).toEqual(
      whole,
    )
  })

  it('an answer without items equals the empty message', () => {
    expect(createItemsWriter('json', StorageItemsListResponseSchema).end()).toBe('{}')
    expect(createItemsWriter('protobuf', StorageItemsListResponseSchema).end()).toHaveLength(0)
  })
})
