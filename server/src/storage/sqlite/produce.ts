import { later } from '../../core/instant.ts'
import type { Item } from '../../core/item.ts'
import type { Import, Imported, ImportedItem, NewItem, Produce, Produced } from '../storage.ts'
import type { KnownQueue } from './queues.ts'
import { itemColumnList, itemColumns, itemValues } from './rows.ts'
import type { Transaction } from './transaction.ts'

const insertSql = `insert into items (${itemColumnList}) values (${itemColumns.map(() => '?').join(', ')})`
const insertOnceSql = `${insertSql} on conflict (queue_id, source_id) where source_id is not null do nothing`

export function produce(transaction: Transaction, command: Produce): Produced {
  const { book, tally } = transaction
  const known = book.at(command.queue, command.partition)
  const ids = book.nextIds(known, command.partition, command.now, command.items.length)
  for (const [index, made] of command.items.entries()) {
    const deadline = later(command.now, known.queue.leaseUs)
    const lease = made.lease === undefined ? null : { holder: made.lease.holder, deadline }
    const attempts = lease === null ? 0 : 1
    insertItem(
      transaction,
      known,
      newItem(command, known, ids[index] as string, { ...made, lease, attempts }),
    )
  }
  tally.add(known.id, command.partition, 'accepted', ids.length)
  return { ids, deadline: later(command.now, known.queue.leaseUs) }
}

export function importItems(transaction: Transaction, command: Import): Imported[] {
  const { book, tally } = transaction
  const known = book.at(command.queue, command.partition)
  const ids = book.nextIds(known, command.partition, command.now, command.items.length)
  return command.items.map((given, index) => {
    const item = newItem(command, known, ids[index] as string, given)
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

function newItem(
  command: Produce | Import,
  known: KnownQueue,
  id: string,
  given: Omit<NewItem, 'lease'> & Omit<ImportedItem, 'lease'> & Pick<ImportedItem, 'lease'>,
): Item {
  const { now, partition } = command
  const base = {
    id,
    rootId: id,
    queue: known.queue.name,
    partition,
    sourceId: given.sourceId ?? null,
    attempts: given.attempts ?? 0,
    attemptsMax: given.attemptsMax ?? 0,
    priority: given.priority ?? 0,
    kind: given.kind ?? '',
    encoding: given.encoding ?? '',
    reference: given.reference ?? '',
    key: given.key ?? null,
    headers: given.headers ?? [],
    payload: given.payload,
    createdAt: now,
    updatedAt: now,
    expireDeadline: given.expireDeadline ?? later(now, known.queue.expireUs),
    failure: given.failure ?? null,
    origin: given.origin ?? null,
    diedAt: given.diedAt ?? (given.origin ? now : null),
    letterId: given.letterId ?? null,
    redrives: given.redrives ?? 0,
  }
  if (given.lease) return { ...base, state: 'leased', lease: given.lease }
  return { ...base, state: 'waiting', availableAt: given.availableAt ?? null }
}
