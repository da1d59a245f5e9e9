import { compileRules } from '../../../core/grouping/rules.ts'
import type { Import, ImportResult } from '../../contract/items.ts'
import { createImportedItem } from '../../shared/items/new-item.ts'
import { checkImport, refuseRepeats } from '../../shared/items/queue-checks.ts'
import { findOrCreateGroups } from '../letters/groups.ts'
import { insertLetterRows } from '../letters/import-letters.ts'
import type { Transaction } from '../transaction.ts'
import { insertLeaseEnds } from './lease-ends.ts'
import { insertLive, isLeased } from './produce.ts'
import { columnNames, encode, isLetterRow, type StoredItem } from './rows.ts'

export async function importItems(
  transaction: Transaction,
  commands: readonly Import[],
): Promise<ImportResult[][]> {
  const rows: StoredItem[] = []
  for (const command of commands) {
    for (const row of await createRows(transaction, command)) rows.push(row)
  }
  const live = rows.filter(({ item }) => !isLetterRow(item))
  const letters = live.length === 0 ? rows : rows.filter(({ item }) => isLetterRow(item))
  if (live.length > 0) await transaction.connection.query(insertLive, encode(columnNames, live))
  const skipped = await insertLetterRows(transaction, letters)
  const stored = skipped.size === 0 ? rows : rows.filter(({ item }) => !skipped.has(item.id))
  await insertLeaseEnds(transaction.connection, stored.filter(isLeased))
  for (const { queueId, item } of stored) transaction.countChanges.accept(queueId, item)
  let at = 0
  return commands.map(({ items, isNewOnly, queue }) => {
    const results = items.map((): ImportResult => {
      const { id, createdAt, expireDeadline } = (rows[at++] as StoredItem).item
      if (!skipped.has(id)) return { id, createdAt, expireDeadline }
      const existingId = skipped.get(id)
      return { id: null, createdAt, expireDeadline, ...(existingId === undefined ? {} : { existingId }) }
    })
    if (isNewOnly === true) refuseRepeats(queue, countSkipped(results))
    return results
  })
}

/** Also locks the partition of the command. */
async function createRows(transaction: Transaction, command: Import): Promise<StoredItem[]> {
  const { items, partition, now } = command
  const queueRow = await transaction.getWithPartition(command.queue, partition)
  checkImport(queueRow.queue, items)
  await transaction.lockPartitions([{ queueRow, partition }])
  const ids = transaction.allocateIds(queueRow, partition, now, items.length)
  const rules = compileRules(queueRow.queue.groupingRules)
  const groupIds = await findOrCreateGroups(
    transaction,
    items.map(({ failure = null, origin = null, payload, deadLetteredAt }) => ({
      queueId: queueRow.id,
      rules,
      payload,
      failure,
      origin,
      seenAt: deadLetteredAt ?? now,
    })),
  )
  if (items.some(({ sourceId = null, origin = null }) => isLetterRow({ sourceId, origin }))) {
    transaction.markLetterStore(queueRow)
  }
  return ids.map((id, index) => ({
    queueId: queueRow.id,
    queue: queueRow.queue,
    item: createImportedItem(command, index, queueRow.queue, id, transaction.random, groupIds[index]),
  }))
}

function countSkipped(results: readonly ImportResult[]): number {
  return results.filter(({ id }) => id === null).length
}
