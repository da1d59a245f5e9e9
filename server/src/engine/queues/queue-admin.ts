/**
 * Creates, changes, deletes, fills and empties queues. Each operator action writes its audit row in the
 * same transaction.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import { type Queue, systemNamespace } from '../../core/items/queue.ts'
import type { AuditEntry } from '../../storage/contract/audit.ts'
import type { Clear, Import, ImportResult, ItemToImport, RemoveResult } from '../../storage/contract/items.ts'
import type { Command } from '../../storage/contract/storage.ts'
import { stepBytesMax } from '../../storage/shared/byte-budget.ts'
import { checkCommand } from '../../storage/shared/items/check-command.ts'
import { createQueueNotFoundError } from '../../storage/shared/items/queue-checks.ts'
import type { Attribution, Engine, RemovedCounts } from '../engine.ts'
import { sumPayloads } from '../quotas/quotas.ts'
import { readWithin, writeWithin } from '../timing/deadline.ts'
import { createAuditContext, type QueueAdminParts, stepItemsMax } from './queue-admin-parts.ts'
import { createDeletions } from './queue-deletions.ts'

type QueueCalls = Pick<
  Engine,
  'createQueue' | 'updateQueue' | 'deleteQueue' | 'finishQueueDeletions' | 'reload'
>
type BulkCalls = Pick<Engine, 'importItems' | 'deleteItems' | 'clear'>
export type QueueAdmin = QueueCalls & BulkCalls
export function createQueueAdmin(parts: QueueAdminParts): QueueAdmin {
  return { ...createQueueCalls(parts), ...createBulkCalls(parts) }
}

function createQueueCalls(parts: QueueAdminParts): QueueCalls {
  const { storage, writer, clock, batchMsMax, announcer, runtimes, quotas, onError } = parts
  return {
    createQueue: (queue, attribution) => {
      const { name } = queue
      const command = { op: 'create-queue', queue, now: clock.now() } as const
      const create = async (): Promise<Queue> => {
        try {
          return (
            await writer.write(withAudit(parts, command, attribution, 'queue.create', name, { queue }))
          )[0]
        } catch (error) {
          quotas.note(queue.namespace ?? systemNamespace, error)
          throw error
        }
      }
      return writeWithin(batchMsMax, create(), {
        advice: `repeat it; QUEUE_EXISTS then means that the first call created queue ${name}`,
        onDone: () => runtimes.onCreated(name),
        onLateError: onError,
      })
    },
    updateQueue: (name, changes, attribution) => {
      const command = { op: 'update-queue', name, changes, now: clock.now() } as const
      const update = async (): Promise<Queue> =>
        (await writer.write(withAudit(parts, command, attribution, 'queue.update', name, { changes })))[0]
      return writeWithin(batchMsMax, update(), {
        // A late update would undo a change that is sent after it.
        advice: `repeat it, or read queue ${name} before you send another change`,
        onDone: async (updated) => {
          // A queue that is no longer paused may have items for leases on other servers.
          announcer.add(name)
          const runtime = await runtimes.find(name)
          if (runtime !== undefined) runtime.queue = updated
          // A lease finds nothing in a paused queue and sets its counts to 0. Count again after the pause.
          await runtimes.refresh(name)
        },
        onLateError: onError,
      })
    },
    ...createDeletions(parts),
    reload: async (name) => {
      const queue = await readWithin(batchMsMax, storage.getQueue(name))
      if (queue === null) {
        await runtimes.onDeleted(name)
        throw createQueueNotFoundError(name)
      }
      const runtime = await runtimes.find(name)
      if (runtime === undefined) return
      // A queue that was deleted and created again is another queue: requests that wait in the first one end.
      const { createdAt, partitions } = runtime.queue
      const isAnother = createdAt !== queue.createdAt || partitions !== queue.partitions
      if (isAnother) await runtimes.onDeleted(name)
      else await readWithin(batchMsMax, runtime.refresh())
    },
  }
}

function createBulkCalls(parts: QueueAdminParts): BulkCalls {
  const { writer, clock, runtimes } = parts
  return {
    importItems: async (queue, partition, items, attribution) => {
      const whole = { op: 'import', queue, partition, items, now: clock.now() } as const
      // Check all items before any is stored, so that only a failing store can end the import half-way.
      checkCommand(whole)
      const release = await admitItems(parts, queue, items)
      const imported: ImportResult[] = []
      let steps = 0
      try {
        do {
          const stepTrace = steps === 0 ? attribution : undefined
          imported.push(...(await importStep(parts, whole, imported.length, stepTrace)))
          steps++
        } while (imported.length < items.length)
      } finally {
        release()
      }
      if (steps > 1) {
        const stored = imported.filter(({ id }) => id !== null).length
        await auditEnd(parts, attribution, 'items.imported', queue, {
          partition,
          items: items.length,
          stored,
        })
      }
      return imported
    },
    deleteItems: async (queue, partition, ids, attribution) => {
      await checkStore(parts, queue)
      let total = noneRemoved
      for (let left = [...new Set(ids)].sort(); left.length > 0; ) {
        const step = left.slice(0, stepItemsMax)
        const act = createAuditContext(parts, attribution, 'items.delete', { partition })
        const now = clock.now()
        const [done] = await writer.write([{ op: 'delete', queue, partition, ids: step, now, ...act }])
        total = addRemoved(total, done)
        const { next } = done
        left = next === null ? left.slice(step.length) : left.filter((id) => id > next)
      }
      await runtimes.refresh(queue)
      return total
    },
    clear: async (queue, what, attribution) => {
      await checkStore(parts, queue)
      let total = noneRemoved
      for (let after: string | null = ''; after !== null; ) {
        const act = createAuditContext(parts, attribution, 'queue.clear', { ...what })
        const step: Clear = { op: 'clear', queue, ...what, after, countMax: stepItemsMax, now: clock.now() }
        const [cleared]: readonly [RemoveResult] = await writer.write([{ ...step, ...act }])
        total = addRemoved(total, cleared)
        after = cleared.next
      }
      await runtimes.refresh(queue)
      return total
    },
  }
}

/** Rejects with QUOTA_EXCEEDED. Returns a function to call when the items are written. */
async function admitItems(
  { storage, quotas, batchMsMax }: QueueAdminParts,
  name: QueueName,
  items: readonly ItemToImport[],
): Promise<() => void> {
  const queue = await readWithin(batchMsMax, storage.getQueue(name))
  // The import itself reports a queue that does not exist.
  if (queue === null) return () => {}
  return (await quotas.admit(queue.namespace, items.length, () => sumPayloads(items))) ?? (() => {})
}

const noneRemoved: RemovedCounts = { removed: 0, discarded: 0 }

function addRemoved(total: RemovedCounts, { removed, discarded }: RemoveResult): RemovedCounts {
  return { removed: total.removed + removed, discarded: total.discarded + discarded }
}

async function importStep(
  parts: QueueAdminParts,
  whole: Import,
  from: number,
  attribution: Attribution | undefined,
): Promise<readonly ImportResult[]> {
  const { queue, partition, items } = whole
  const command = { ...whole, items: takeStep(items, from) }
  const details = { partition, items: items.length }
  const store = async (): Promise<readonly ImportResult[]> =>
    (await parts.writer.write(withAudit(parts, command, attribution, 'items.import', queue, details)))[0]
  return writeWithin(parts.batchMsMax, store(), {
    advice:
      `${from} of ${items.length} items are stored, and perhaps the next ${command.items.length}; ` +
      'if you repeat the call, items with a source id are skipped and other items are stored twice',
    onLateError: parts.onError,
  })
}

function takeStep(items: readonly ItemToImport[], from: number): readonly ItemToImport[] {
  let [until, bytes] = [from, 0]
  while (until < items.length && until - from < stepItemsMax && bytes < stepBytesMax) {
    bytes += items[until++]?.payload.byteLength ?? 0
  }
  return items.slice(from, until)
}

/**
 * Finds out that the store does not answer before anything is started. Deleting millions of rows can take
 * long, so such a write has no deadline of its own.
 */
async function checkStore({ storage, batchMsMax }: QueueAdminParts, name: QueueName): Promise<void> {
  await readWithin(batchMsMax, storage.getQueue(name))
}

function createAuditEntry(
  { clock }: QueueAdminParts,
  attribution: Attribution,
  action: string,
  target: string,
  details: AuditEntry['details'],
): AuditEntry {
  return { at: clock.now(), action, target, details, ...attribution }
}

/** The command with its audit row, in one transaction. */
function withAudit<C extends Command>(
  parts: QueueAdminParts,
  command: C,
  attribution: Attribution | undefined,
  action: string,
  target: string,
  details: AuditEntry['details'],
) {
  if (attribution === undefined) return [command] as const
  return [
    command,
    { op: 'audit', entries: [createAuditEntry(parts, attribution, action, target, details)] },
  ] as const
}

/** Records the result of a call of several transactions. Its start was recorded in the first of them. */
async function auditEnd(
  parts: QueueAdminParts,
  attribution: Attribution | undefined,
  action: string,
  target: string,
  details: AuditEntry['details'],
): Promise<void> {
  if (attribution === undefined) return
  const entries = [createAuditEntry(parts, attribution, action, target, details)]
  // The work is done and its start is on record, so a failure here does not fail the call.
  const written = parts.writer.write([{ op: 'audit', entries }])
  await readWithin(parts.batchMsMax, written).catch(parts.onError)
}
