import { addDuration } from '../../../core/time/instant.ts'
import type { Produce, ProduceResult } from '../../contract/items.ts'
import { checkSameItems, digestItems } from '../../shared/items/items-digest.ts'
import { createProducedItem } from '../../shared/items/new-item.ts'
import { toProduceKey } from '../../shared/items/produce-key-row.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { insertItem } from './write-rows.ts'

export function produce(transaction: Transaction, command: Produce): ProduceResult {
  const { queueCache, countChanges } = transaction
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const digest = command.once ? digestItems(command.items) : ''
  const first = command.once && findFirstResult(transaction, queueRow, command, command.once, digest)
  if (first) return first
  const ids = queueCache.allocateIds(
    queueRow,
    command.partition,
    command.now,
    command.items.length,
    countChanges,
  )
  for (const [index, id] of ids.entries()) {
    insertItem(transaction, queueRow, createProducedItem(command, index, queueRow.queue, id))
  }
  countChanges.add(queueRow.id, command.partition, 'accepted', ids.length)
  if (command.once) insertKey(transaction, queueRow, command, command.once, ids, digest)
  return toResult(command, queueRow, ids)
}

function toResult(command: Produce, queueRow: QueueRow, ids: readonly string[]): ProduceResult {
  const deadline = addDuration(command.now, queueRow.queue.leaseTimeoutUs)
  return { ids, partition: command.partition, deadline, isRepeat: false }
}

type Once = NonNullable<Produce['once']>

/** The result of the first command with this key, if the key is still valid. */
function findFirstResult(
  { database }: Transaction,
  queueRow: QueueRow,
  command: Produce,
  once: Once,
  digest: string,
): ProduceResult | undefined {
  const sql = 'select partition, ids, digest from produce_keys where queue_id = ? and key = ? and until > ?'
  const row = database.get(sql, queueRow.id, once.key, command.now)
  if (row === undefined) return undefined
  const first = toProduceKey(row)
  checkSameItems(command, digest, first.digest)
  return { ...toResult(command, queueRow, first.ids), partition: first.partition, isRepeat: true }
}

/**
 * Each new key deletes up to this number of keys that are no longer valid, so that they do not accumulate.
 */
const keysDeletedMax = 10

function insertKey(
  { database }: Transaction,
  queueRow: QueueRow,
  command: Produce,
  once: Once,
  ids: readonly string[],
  digest: string,
): void {
  database.run(
    'delete from produce_keys where (queue_id, key) in (select queue_id, key from produce_keys where until <= ? order by until limit +?)',
    command.now,
    keysDeletedMax,
  )
  database.run(
    'insert or replace into produce_keys (queue_id, key, partition, ids, digest, until) values (?, ?, ?, ?, ?, ?)',
    queueRow.id,
    once.key,
    command.partition,
    JSON.stringify(ids),
    digest,
    once.until,
  )
}
