/** Calls that inspect, import and delete the items of a queue. */
import type { Caller, CallOptions } from '../http/caller.ts'
import { type ImportedItem, StoredItem, toWireImported, type WireStoredItem } from './item.ts'
import { createQueueApi, type ProduceOptions } from './queue-api.ts'

export type ItemsQuery = Readonly<{
  partition?: number
  /** Starts at this id, or at the next existing one. */
  from?: string
  /** Default 1,000. */
  limit?: number
}>

export interface StoredItemCalls {
  /** Waiting and leased items of one partition, in order of id. */
  listItems(queue: string, query?: ItemsQuery, options?: CallOptions): Promise<readonly StoredItem[]>
  listScheduledItems(queue: string, query?: ItemsQuery, options?: CallOptions): Promise<readonly StoredItem[]>
  /**
   * Stores items as given. An item whose source id already exists is skipped and returned without an id. The
   * server stores in steps, so a failed call may have stored the first items; with source ids it can safely
   * be repeated.
   */
  importItems(
    queue: string,
    partition: number,
    items: readonly ImportedItem[],
    options?: ProduceOptions,
  ): Promise<readonly StoredItem[]>
  /** Deletes items in any state. Ids that do not exist are ignored. */
  deleteItems(queue: string, partition: number, ids: readonly string[], options?: CallOptions): Promise<void>
}

export function createStoredItemCalls(caller: Caller): StoredItemCalls {
  const { call, callOnce } = createQueueApi(caller)
  const list = async (
    path: string,
    queue: string,
    { partition, from, limit }: ItemsQuery = {},
    options?: CallOptions,
  ) => readItems((await call(path, { queue_name: queue, partition, pivot: from, limit }, options)).body)

  return {
    listItems: (queue, query, options) => list('storage/items.list', queue, query, options),
    listScheduledItems: (queue, query, options) => list('storage/scheduled.list', queue, query, options),
    importItems: async (queue, partition, items, options) => {
      const body = { queue_name: queue, partition, items: items.map(toWireImported) }
      return readItems((await callOnce('storage/items.import', body, options)).body)
    },
    deleteItems: async (queue, partition, ids, options) => {
      await call('storage/items.delete', { queue_name: queue, partition, ids }, options)
    },
  }
}

/** The server omits an empty list. */
function readItems(body: unknown): readonly StoredItem[] {
  const { items = [] } = body as { items?: readonly WireStoredItem[] }
  return items.map((item) => new StoredItem(item))
}
