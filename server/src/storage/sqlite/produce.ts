import { later } from '../../core/instant.ts'
import type { Item } from '../../core/item.ts'
import { importedItem, producedItem } from '../new-item.ts'
import type { Import, Imported, Produce, Produced } from '../storage.ts'
import type { KnownQueue } from './queues.ts'
import { itemColumnList, itemColumns, itemValues } from './rows.ts'
import type { Transaction } from './transaction.ts'

const insertSql = `insert into items (${itemColumnList}) values (${itemColumns.map(() => '?').join(', ')})`
const insertOnceSql = `${insertSql} on conflict (queue_id, source_id) where source_id is not null do nothing`

export function produce(transaction: Transaction, command: Produce): Produced {
  const { book, tally } = transaction
  const known = book.at(command.queue, command.partition)
  const before = command.once && findKey(transaction, known, command, command.once)
  if (before) return before
  const ids = book.nextIds(known, command.partition, command.now, command.items.length, tally)
  for (const [index, id] of ids.entries()) {
    insertItem(transaction, known, producedItem(command, index, known.queue, id))
  }
  tally.add(known.id, command.partition, 'accepted', ids.length)
  if (command.once) keepKey(transaction, known, command, command.once, ids)
  return {
    ids,
    partition: command.partition,
    deadline: later(command.now, known.queue.leaseUs),
    isRepeat: false,
  }
}

type Once = NonNullable<Produce['once']>

function findKey(
  { database }: Transaction,
  known: KnownQueue,
  command: Produce,
  once: Once,
): Produced | undefined {
  const sql = 'select partition, ids from produce_keys where queue_id = ? and key = ? and until > ?'
  const row = database.get(sql, known.id, once.key, command.now)
  if (row === undefined) return undefined
  return {
    ids: JSON.parse(row.ids as string) as string[],
    partition: row.partition as number,
    deadline: later(command.now, known.queue.leaseUs),
    isRepeat: true,
  }
}

/** Each key that comes takes a few with it whose time is over, so that they never add up. */
const forgotten = 10

function keepKey(
  { database }: Transaction,
  known: KnownQueue,
  command: Produce,
  once: Once,
  ids: readonly string[],
): void {
  database.run(
    'delete from produce_keys where (queue_id, key) in (select queue_id, key from produce_keys where until <= ? order by until limit +?)',
    command.now,
    forgotten,
  )
  database.run(
    'insert or replace into produce_keys (queue_id, key, partition, ids, until) values (?, ?, ?, ?, ?)',
    known.id,
    once.key,
    command.partition,
    JSON.stringify(ids),
    once.until,
  )
}

export function importItems(transaction: Transaction, command: Import): Imported[] {
  const { book, tally } = transaction
  const known = book.at(command.queue, command.partition)
  const ids = book.nextIds(known, command.partition, command.now, command.items.length, tally)
  return ids.map((id, index) => {
    const item = importedItem(command, index, known.queue, id)
    const isNew = insertItem(transaction, known, item)
    if (isNew) tally.add(known.id, command.partition, 'accepted')
    return { id: isNew ? item.id : null, createdAt: item.createdAt, expireDeadline: item.expireDeadline }
  })
}

/** False when its source id is in the queue already: then nothing changed. */
export function insertItem({ database, tally }: Transaction, known: KnownQueue, item: Item): boolean {
  const sql = item.sourceId === null ? insertSql : insertOnceSql
  if (database.run(sql, ...itemValues(known, item)) === 0) return false
  tally.enter(known.id, item)
  return true
}
