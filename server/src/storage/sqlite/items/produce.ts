import { later } from '../../../core/instant.ts'
import type { Produce, ProduceResult } from '../../contract/items.ts'
import { checkSameItems, digestItems } from '../../shared/items-digest.ts'
import { createProducedItem } from '../../shared/new-item.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { insertItem } from './write-rows.ts'

export function produce(transaction: Transaction, command: Produce): ProduceResult {
  const { queueCache, tally } = transaction
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const digest = command.once ? digestItems(command.items) : ''
  const before = command.once && findKey(transaction, queueRow, command, command.once, digest)
  if (before) return before
  const ids = queueCache.nextIds(queueRow, command.partition, command.now, command.items.length, tally)
  for (const [index, id] of ids.entries()) {
    insertItem(transaction, queueRow, createProducedItem(command, index, queueRow.queue, id))
  }
  tally.add(queueRow.id, command.partition, 'accepted', ids.length)
  if (command.once) keepKey(transaction, queueRow, command, command.once, ids, digest)
  return {
    ids,
    partition: command.partition,
    deadline: later(command.now, queueRow.queue.leaseUs),
    isRepeat: false,
  }
}

type Once = NonNullable<Produce['once']>

function findKey(
  { database }: Transaction,
  queueRow: QueueRow,
  command: Produce,
  once: Once,
  digest: string,
): ProduceResult | undefined {
  const sql = 'select partition, ids, digest from produce_keys where queue_id = ? and key = ? and until > ?'
  const row = database.get(sql, queueRow.id, once.key, command.now)
  if (row === undefined) return undefined
  checkSameItems(command, digest, row.digest)
  return {
    ids: JSON.parse(row.ids as string) as string[],
    partition: row.partition as number,
    deadline: later(command.now, queueRow.queue.leaseUs),
    isRepeat: true,
  }
}

/** Each key that comes takes a few with it whose time is over, so that they never add up. */
const forgotten = 10

function keepKey(
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
    forgotten,
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
