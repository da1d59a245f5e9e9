import type { Import, ImportResult } from '../../contract/items.ts'
import { createImportedItem } from '../../shared/items/new-item.ts'
import { checkImport, refuseRepeats } from '../../shared/items/queue-checks.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { acceptItem } from './write-rows.ts'

export function importItems(transaction: Transaction, command: Import): ImportResult[] {
  const { queueCache, countChanges } = transaction
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  checkImport(queueRow.queue, command.items)
  const ids = queueCache.allocateIds(
    queueRow,
    command.partition,
    command.now,
    command.items.length,
    countChanges,
  )
  const random = () => queueCache.random()
  const results = ids.map((id, index): ImportResult => {
    const item = createImportedItem(command, index, queueRow.queue, id, random)
    const times = { createdAt: item.createdAt, expireDeadline: item.expireDeadline }
    if (acceptItem(transaction, queueRow, item)) return { id: item.id, ...times }
    return { id: null, existingId: findRootId(transaction, queueRow, item.sourceId), ...times }
  })
  if (command.isNewOnly === true) refuseRepeats(command.queue, countSkipped(results))
  return results
}

function findRootId({ database }: Transaction, { id }: QueueRow, sourceId: string | null): string {
  const row = database.getArray(
    'select root_id from items where queue_id = ? and source_id = ?',
    id,
    sourceId,
  )
  if (row === undefined) throw new Error(`source id ${sourceId} exists but was not found`)
  return readText(row, 0)
}

function countSkipped(results: readonly ImportResult[]): number {
  return results.filter(({ id }) => id === null).length
}
