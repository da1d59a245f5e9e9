import type { Leased } from '../../core/item.ts'
import { complete as completed, giveBack } from '../../core/transitions.ts'
import type { Change, Complete, Extend, Refusal, Retry, Settled } from '../storage.ts'
import { applyFate } from './fate.ts'
import type { KnownQueue } from './queues.ts'
import { itemColumnList, itemOf } from './rows.ts'
import type { Transaction } from './transaction.ts'

export function complete(transaction: Transaction, command: Complete): Settled {
  return settle(transaction, command, command.ids, (known, item) =>
    applyFate(transaction, known, item, completed(item, known.queue), command.now),
  )
}

export function retry(transaction: Transaction, command: Retry): Settled {
  const ids = command.items.map((item) => item.id)
  return settle(transaction, command, ids, (known, item, index) => {
    const given = command.items[index] as Retry['items'][number]
    return applyFate(transaction, known, item, giveBack(item, given, known.queue, command.now), command.now)
  })
}

const extendSql = `update items set lease_deadline = ?, due_at = ?, updated_at = ?
  where queue_id = ? and partition = ? and id = ?`

export function extend(transaction: Transaction, command: Extend): Settled {
  return settle(transaction, command, command.ids, (known, item): Change => {
    const { deadline, now, partition } = command
    transaction.database.run(extendSql, deadline, deadline, now, known.id, partition, item.id)
    transaction.tally.leave(known.id, item)
    transaction.tally.enter(known.id, { ...item, lease: { ...item.lease, deadline } })
    const place = { queue: item.queue, partition, id: item.id }
    return {
      ...place,
      fromId: item.id,
      fromQueue: item.queue,
      fromPartition: partition,
      to: 'leased',
      because: 'extend',
      failure: item.failure,
    }
  })
}

const findSql = `select ${itemColumnList} from items where queue_id = ? and partition = ? and id = ?`

/** All or nothing: looks at every item first, and touches none when one is refused. */
function settle(
  { database, book }: Transaction,
  command: Readonly<{ queue: string; partition: number }>,
  ids: readonly string[],
  act: (known: KnownQueue, item: Leased, index: number) => Change,
): Settled {
  const known = book.at(command.queue, command.partition)
  const refused: Refusal[] = []
  const held: Leased[] = []
  const seen = new Set<string>()
  for (const id of ids) {
    const row = seen.has(id) ? undefined : database.get(findSql, known.id, command.partition, id)
    const item = row && itemOf(row, command.queue)
    seen.add(id)
    if (item?.state === 'leased') held.push(item)
    else
      refused.push({
        id,
        why: item?.state === 'waiting' && item.availableAt === null ? 'not-leased' : 'missing',
      })
  }
  if (refused.length > 0) return { isSettled: false, refused }
  return { isSettled: true, changes: held.map((item, index) => act(known, item, index)) }
}
