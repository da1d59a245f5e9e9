/**
 * The engine as a caller sees it who may act in some namespaces only. Queues of other namespaces do not exist
 * in it: every call gets the error for a queue that was never created.
 */
import { intersectScope } from '../core/access/scope.ts'
import type { QueueName } from '../core/ids/ids.ts'
import { type Queue, systemNamespace } from '../core/items/queue.ts'
import { overlay } from '../core/overlay.ts'
import { KnownError } from '../errors.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { redactStorage } from '../storage/scope/redacted-storage.ts'
import { scopeStorage } from '../storage/scope/scoped-storage.ts'
import { checkDeadQueue, createQueueNotFoundError } from '../storage/shared/items/queue-checks.ts'
import type { Engine } from './engine.ts'

export type ScopedEngineParts = Readonly<{
  /** The engine of all namespaces. */
  engine: Engine
  storage: StoreReads
  /** The queue, if this server works with it: then a call costs no read from the store. */
  peekQueue: (name: QueueName) => Queue | undefined
  namespaces: readonly string[]
}>

export function createScopedEngine({ engine, storage, peekQueue, namespaces }: ScopedEngineParts): Engine {
  const visible = scopeStorage(storage, namespaces)
  const isVisible = async (name: QueueName): Promise<boolean> => {
    const known = peekQueue(name)
    if (known !== undefined) return namespaces.includes(known.namespace)
    return (await visible.getQueue(name)) !== null
  }
  const inQueue = async <T>(name: QueueName, call: () => Promise<T>): Promise<T> => {
    if (!(await isVisible(name))) throw createQueueNotFoundError(name)
    return call()
  }
  const checkVisibleDeadQueue = async (name: QueueName, deadQueue: QueueName | null | undefined) => {
    if (deadQueue == null || deadQueue === name || (await isVisible(deadQueue))) return
    checkDeadQueue(name, deadQueue, null, false)
  }
  return {
    ...scopeItemCalls(engine, inQueue),
    createQueue: async (queue, attribution) => {
      const { name, namespace = systemNamespace, deadQueue } = queue
      if (!namespaces.includes(namespace))
        throw new KnownError('ACCESS_DENIED', `you may not create queues in namespace ${namespace}`)
      await checkVisibleDeadQueue(name, deadQueue)
      return engine.createQueue(queue, attribution)
    },
    updateQueue: (name, changes, attribution) =>
      inQueue(name, async () => {
        await checkVisibleDeadQueue(name, changes.deadQueue)
        return engine.updateQueue(name, changes, attribution)
      }),
    deleteQueue: (name, attribution, how) => inQueue(name, () => engine.deleteQueue(name, attribution, how)),
    getQueue: (name) => visible.getQueue(name),
    listQueues: (query) => visible.listQueues(query),
    readableIn: (readable) => createRedactedEngine(engine.within(namespaces), visible, readable),
    within: (inner) => engine.within(intersectScope(namespaces, inner)),
    // Layers that write commands of their own check them.
    write: engine.write,
    quotas: engine.quotas,
    onEvent: engine.onEvent,
    onAvailable: engine.onAvailable,
    hold: engine.hold,
    advance: engine.advance,
    recordLeaseCalls: engine.recordLeaseCalls,
    finishQueueDeletions: engine.finishQueueDeletions,
    close: engine.close,
  }
}

/** Lists items without the content of other namespaces. */
export function createRedactedEngine(
  engine: Engine,
  visible: StoreReads,
  readable: readonly string[],
): Engine {
  const redacted = redactStorage(visible, readable)
  return overlay(engine, {
    listItems: (query) => redacted.listItems(query),
    within: (inner) => createRedactedEngine(engine.within(inner), visible, readable),
  })
}

type ItemCalls = Pick<
  Engine,
  | 'reload'
  | 'produce'
  | 'lease'
  | 'complete'
  | 'retry'
  | 'extend'
  | 'importItems'
  | 'deleteItems'
  | 'clear'
  | 'listItems'
  | 'readStats'
  | 'readLastLeaseCallAt'
>

function scopeItemCalls(
  engine: Engine,
  inQueue: <T>(name: QueueName, call: () => Promise<T>) => Promise<T>,
): ItemCalls {
  return {
    reload: (name) => inQueue(name, () => engine.reload(name)),
    produce: (name, items, options) => inQueue(name, () => engine.produce(name, items, options)),
    lease: (name, options) => inQueue(name, () => engine.lease(name, options)),
    complete: (name, partition, ids, options) =>
      inQueue(name, () => engine.complete(name, partition, ids, options)),
    retry: (name, partition, items, options) =>
      inQueue(name, () => engine.retry(name, partition, items, options)),
    extend: (name, partition, ids, leaseTimeoutUs, options) =>
      inQueue(name, () => engine.extend(name, partition, ids, leaseTimeoutUs, options)),
    importItems: (name, partition, items, attribution) =>
      inQueue(name, () => engine.importItems(name, partition, items, attribution)),
    deleteItems: (name, partition, ids, attribution) =>
      inQueue(name, () => engine.deleteItems(name, partition, ids, attribution)),
    clear: (name, what, attribution) => inQueue(name, () => engine.clear(name, what, attribution)),
    listItems: (query) => inQueue(query.queue, () => engine.listItems(query)),
    readStats: (name) => inQueue(name, () => engine.readStats(name)),
    readLastLeaseCallAt: (name) => inQueue(name, () => engine.readLastLeaseCallAt(name)),
  }
}
