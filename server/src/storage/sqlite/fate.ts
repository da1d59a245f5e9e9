import { become } from '../../core/become.ts'
import { deadLetterOf, deadPartition } from '../../core/dead-letter.ts'
import type { Instant } from '../../core/instant.ts'
import type { Item } from '../../core/item.ts'
import type { Fate } from '../../core/transitions.ts'
import type { Change } from '../storage.ts'
import { insertItem } from './produce.ts'
import type { KnownQueue } from './queues.ts'
import { itemColumns, itemValues } from './rows.ts'
import type { Transaction } from './transaction.ts'

/** The payload, the key and the headers are not written again: they never change. */
const changing = itemColumns.filter(
  (column) => !['queue_id', 'partition', 'key', 'headers', 'payload'].includes(column),
)
const rewriteSql = `update items set ${changing.map((column) => `${column} = ?`).join(', ')}
  where queue_id = ? and partition = ? and id = ?`
const changingPlaces = changing.map((column) => itemColumns.indexOf(column))

const deleteSql = 'delete from items where queue_id = ? and partition = ? and id = ?'

/** Makes of the item what the rules decided, and says what happened. */
export function applyFate(
  transaction: Transaction,
  known: KnownQueue,
  item: Item,
  fate: Fate,
  now: Instant,
): Change {
  const { book, tally } = transaction
  const from = { fromId: item.id, fromQueue: item.queue, fromPartition: item.partition }
  const here = { ...from, queue: item.queue, partition: item.partition, because: fate.because }
  switch (fate.to) {
    case 'waiting':
    case 'done':
    case 'dead': {
      const nextId = () => book.nextIds(known, item.partition, now, 1, tally)[0] as string
      const after = become(item, fate, known.queue, now, nextId)
      rewrite(transaction, known, item, after)
      const to = after.state === 'waiting' && after.availableAt !== null ? 'scheduled' : after.state
      return { ...here, to, id: after.id, failure: fate.to === 'done' ? null : fate.failure }
    }
    case 'move': {
      const target = book.get(fate.deadQueue)
      const partition = deadPartition(item.partition, target.queue)
      const [id = ''] = book.nextIds(target, partition, now, 1, tally)
      const letter = deadLetterOf(item, fate.failure, { queue: target.queue, partition, id }, now)
      remove(transaction, known, item)
      tally.add(known.id, item.partition, 'deadLettered')
      const moved = {
        ...from,
        because: fate.because,
        to: 'moved',
        queue: letter.queue,
        failure: fate.failure,
      } as const
      if (insertItem(transaction, target, letter)) {
        tally.add(target.id, letter.partition, 'accepted')
        return { ...moved, id, partition }
      }
      // It is there already, because an earlier move got that far: one dead letter per death.
      const sql = 'select id, partition from items where queue_id = ? and source_id = ?'
      const there = transaction.database.get(sql, target.id, item.id)
      return { ...moved, id: there?.id as string, partition: there?.partition as number }
    }
    case 'remove': {
      remove(transaction, known, item)
      tally.add(known.id, item.partition, fate.as)
      return { ...here, to: 'removed', id: null, failure: fate.failure }
    }
  }
}

export function remove({ database, tally }: Transaction, known: KnownQueue, item: Item): void {
  database.run(deleteSql, known.id, item.partition, item.id)
  tally.leave(known.id, item)
}

export function rewrite(
  { database, tally }: Transaction,
  known: KnownQueue,
  before: Item,
  after: Item,
): void {
  const values = itemValues(known, after)
  const changed = changingPlaces.map((place) => values[place] ?? null)
  database.run(rewriteSql, ...changed, known.id, before.partition, before.id)
  tally.leave(known.id, before)
  tally.enter(known.id, after)
}
