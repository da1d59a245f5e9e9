import { create } from '@bufbuild/protobuf'
import type { ListedState } from '../../../storage/contract/items.ts'
import type { Route } from '../../http/route.ts'
import { checkIds, findIdFault } from '../checks/item-ids.ts'
import { findPartition, runInQueue } from '../checks/lookup.ts'
import {
  type StorageItem,
  StorageItemsDeleteRequestSchema,
  StorageItemsImportResponseSchema,
  StorageItemsListRequestSchema,
  StorageItemsListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax, readListLimit } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { badRequest } from '../protocol/fault.ts'
import { createTrace, queueRoute } from '../protocol/queue-route.ts'
import { importBody } from './import-body.ts'
import { createEcho, toItemToImport, toStorageItem } from './storage-item.ts'

function listRoute(path: string, summary: string, states: readonly ListedState[]): Route {
  return queueRoute({
    path,
    permission: 'queue.stats',
    summary,
    bodyBytesMax: bodyBytesMax.ids,
    request: createCodec(StorageItemsListRequestSchema),
    response: createCodec(StorageItemsListResponseSchema),
    handle: async ({ queueName, partition, pivot, limit }, { engine }) => {
      await findPartition(engine, queueName, partition)
      const countMax = readListLimit(limit)
      const fault = pivot === '' ? undefined : findIdFault(pivot)
      if (fault !== undefined) throw fault
      const items = await engine.listItems({
        queue: queueName,
        partition,
        states,
        countMax,
        ...(pivot !== '' && { from: { id: pivot, isIncluded: true } }),
      })
      return create(StorageItemsListResponseSchema, { items: items.map(toStorageItem) })
    },
  })
}

const import_ = queueRoute({
  path: '/v1/storage/items.import',
  permission: 'queue.produce',
  summary:
    'Stores items as given, with new ids. Skips each item whose source_id already exists in the partition.',
  bodyBytesMax: bodyBytesMax.import,
  slowMs: Number.POSITIVE_INFINITY,
  request: importBody,
  response: createCodec(StorageItemsImportResponseSchema),
  handle: async (message, call) => {
    const { engine } = call
    const { queueName, partition, items } = message
    const check = () => {
      if (items.length === 0) throw badRequest('items is invalid; cannot be empty')
    }
    const imported = await runInQueue(engine, message, check, () =>
      engine.importItems(queueName, partition, items.map(toItemToImport), createTrace(call)),
    )
    const echoes = imported.map((result, index) => createEcho(items[index] as StorageItem, result))
    return create(StorageItemsImportResponseSchema, { items: echoes })
  },
})

const delete_ = queueRoute({
  path: '/v1/storage/items.delete',
  permission: 'queue.clear',
  summary: 'Removes items in any state. Unknown ids are ignored.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(StorageItemsDeleteRequestSchema),
  handle: async (message, call) => {
    const { engine } = call
    const { queueName, partition, ids } = message
    const check = () => {
      if (ids.length === 0) throw badRequest('ids is invalid; cannot be empty')
      checkIds(ids)
    }
    await runInQueue(engine, message, check, () =>
      engine.deleteItems(queueName, partition, ids, createTrace(call)),
    )
    return undefined
  },
})

export const storageItemsRoutes = [
  listRoute('/v1/storage/items.list', 'Lists the queued and leased items of a partition by id.', [
    'waiting',
    'leased',
  ]),
  listRoute('/v1/storage/scheduled.list', 'Lists the scheduled items of a partition by id.', ['scheduled']),
  import_,
  delete_,
]
