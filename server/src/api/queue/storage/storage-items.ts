import { type Item, payloadBytesMax } from '../../../core/items/item.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { ItemsQuery, ListedState } from '../../../storage/contract/items.ts'
import { takeTurn } from '../../../turns.ts'
import { createAttribution } from '../../http/attribution.ts'
import type { Route } from '../../http/route.ts'
import type { Part } from '../../http/wire/json-parts.ts'
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
import { createBadRequest } from '../protocol/fault.ts'
import { type Format, parseFormat } from '../protocol/format.ts'
import { type Call, queueRoute } from '../protocol/queue-route.ts'
import { importBody } from './import-body.ts'
import { createEcho, toItemToImport, toStorageItem } from './storage-item.ts'
import { createItemsWriter, itemsPerPart } from './storage-items-response.ts'

function listRoute(path: string, summary: string, states: readonly ListedState[]): Route {
  return queueRoute({
    path,
    permission: 'queue.stats',
    summary,
    bodyBytesMax: bodyBytesMax.ids,
    answerKind: 'large',
    request: createCodec(StorageItemsListRequestSchema),
    response: writtenItems,
    handle: async ({ queueName, partition, pivot, limit }, call) => {
      const { engine } = call
      await findPartition(engine, queueName, partition)
      const countMax = readListLimit(limit)
      const fault = pivot === '' ? undefined : findIdFault(pivot)
      if (fault !== undefined) throw fault
      const start = pivot === '' ? undefined : { id: pivot, isIncluded: true }
      const writer = createItemsWriter(chooseFormat(call), StorageItemsListResponseSchema)
      const pages = readPages(engine, { queue: queueName, partition, states }, countMax, start)
      for await (const page of pages) writer.add(page.map(toStorageItem))
      return writer.end()
    },
  })
}

/** A list ends with the item that reaches this number of bytes. The caller continues behind its id. */
const listBytesMax = 4 * 2 ** 20

/**
 * Reads a list in small pages: other requests are answered between them, and the payloads of a page are
 * released once they are written.
 */
async function* readPages(
  engine: Pick<Engine, 'listItems'>,
  query: Pick<ItemsQuery, 'queue' | 'partition' | 'states'>,
  countMax: number,
  start: ItemsQuery['from'],
): AsyncGenerator<readonly Item[]> {
  let from = start
  let count = 0
  for (let bytes = 0; count < countMax && bytes < listBytesMax; ) {
    const asked = Math.min(countMax - count, itemsPerPart)
    const page = await engine.listItems({
      ...query,
      countMax: asked,
      bytesMax: listBytesMax - bytes,
      ...(from !== undefined && { from }),
    })
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < asked) return
    from = { id: last.id, isIncluded: false }
    count += page.length
    bytes += page.reduce((sum, item) => sum + measureItem(item), 0)
  }
}

function measureItem({ payload, kind, encoding, reference }: Item): number {
  return payload.length + kind.length + encoding.length + reference.length
}

function checkPayloads(items: readonly StorageItem[]): void {
  for (const [index, { payload }] of items.entries()) {
    if (payload.length <= payloadBytesMax) continue
    throw createBadRequest(
      `items[${index}].payload is invalid; it has ${payload.length} bytes, at most ${payloadBytesMax} are allowed`,
    )
  }
}

/** An import is also answered in parts of about this many bytes. */
const bytesPerPart = 2 ** 20

/** The handler has written the items: it knows them part by part. */
const writtenItems = {
  desc: StorageItemsListResponseSchema,
  write: (body: string | Uint8Array | Iterable<Part>) => body,
}

function chooseFormat({ request }: Call): Format {
  return parseFormat(request.headers.accept) ?? 'json'
}

const import_ = queueRoute({
  path: '/v1/storage/items.import',
  permission: 'queue.produce',
  summary:
    'Stores items as given, with new ids. Skips each item whose source_id already exists in the partition.',
  bodyBytesMax: bodyBytesMax.import,
  slowMs: Number.POSITIVE_INFINITY,
  request: importBody,
  response: { ...writtenItems, desc: StorageItemsImportResponseSchema },
  handle: async (message, call) => {
    const { engine } = call
    const { queueName, partition, items } = message
    const check = () => {
      if (items.length === 0) throw createBadRequest('items is invalid; cannot be empty')
      checkPayloads(items)
    }
    const imported = await runInQueue(engine, message, check, () =>
      engine.importItems(queueName, partition, items.map(toItemToImport), createAttribution(call.request)),
    )
    const writer = createItemsWriter(chooseFormat(call), StorageItemsImportResponseSchema)
    let echoes: StorageItem[] = []
    let bytes = 0
    for (const [index, result] of imported.entries()) {
      const echo = createEcho(items[index] as StorageItem, result)
      bytes += echo.payload.length
      echoes.push(echo)
      if (echoes.length < itemsPerPart && bytes < bytesPerPart) continue
      writer.add(echoes)
      await takeTurn()
      echoes = []
      bytes = 0
    }
    writer.add(echoes)
    return writer.end()
  },
})

const delete_ = queueRoute({
  path: '/v1/storage/items.delete',
  permission: 'queue.clear',
  summary: 'Removes items in any state, and discards open dead letters. Unknown ids are ignored.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(StorageItemsDeleteRequestSchema),
  handle: async (message, call) => {
    const { engine } = call
    const { queueName, partition, ids } = message
    const check = () => {
      if (ids.length === 0) throw createBadRequest('ids is invalid; cannot be empty')
      checkIds(ids)
    }
    await runInQueue(engine, message, check, () =>
      engine.deleteItems(queueName, partition, ids, createAttribution(call.request)),
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
