import { decideSettle } from '../../../core/decide-settle.ts'
import type { Item, Leased } from '../../../core/item.ts'
import { changeByComplete, changeByExtend, type ItemChange } from '../../../core/plan-transition.ts'
import { complete as completed, retryItem, unlease as unleasedItem } from '../../../core/transitions.ts'
import type { Complete, Extend, Retry, SettleResult, Unlease } from '../../contract/items.ts'
import type { Database, Values } from '../connection/database.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { executeTransition } from './execute-transitions.ts'
import { itemColumnList, stateCodes, toItem } from './rows.ts'
import { rewriteRow } from './write-rows.ts'

/** Only what decides: most items are completed and gone, and their payload need not be read for that. */
const lightSql = `select rowid, state, created_at, lease_deadline,
    origin is null and letter_id is null as is_plain
  from items where queue_id = ? and partition = ? and id = ?`
const deleteSql = 'delete from items where rowid = ?'

export function complete(transaction: Transaction, command: Complete): SettleResult {
  const { database, queueCache, tally } = transaction
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const rows = command.ids.map((id) => database.array(lightSql, queueRow.id, command.partition, id))
  const isPlain = (row: Values | undefined) => row?.[1] === stateCodes.leased && row[4] === 1
  if (queueRow.queue.keepDoneUs > 0 || !rows.every(isPlain) || new Set(command.ids).size < rows.length) {
    return settle(transaction, command, command.ids, (held, item) =>
      executeTransition(transaction, held, item, completed(item, held.queue), command.now),
    )
  }
  const changes = rows.map((row, index): ItemChange => {
    const [rowid, , createdAt, deadline] = row as Values
    database.run(deleteSql, rowid as number)
    tally.removeLeased(queueRow.id, command.partition, createdAt as number, deadline as number)
    return changeByComplete(command, command.ids[index] as string)
  })
  tally.add(queueRow.id, command.partition, 'completed', changes.length)
  return { isSettled: true, changes }
}

export function retry(transaction: Transaction, command: Retry): SettleResult {
  const ids = command.items.map((item) => item.id)
  return settle(transaction, command, ids, (queueRow, item, index) => {
    const given = command.items[index] as Retry['items'][number]
    return executeTransition(
      transaction,
      queueRow,
      item,
      retryItem(item, given, queueRow.queue, command.now),
      command.now,
    )
  })
}

const extendSql = `update items set lease_deadline = ?, due_at = ?, updated_at = ?
  where queue_id = ? and partition = ? and id = ?`

export function extend(transaction: Transaction, command: Extend): SettleResult {
  return settle(transaction, command, command.ids, (queueRow, item): ItemChange => {
    const { deadline, now, partition } = command
    transaction.database.run(extendSql, deadline, deadline, now, queueRow.id, partition, item.id)
    transaction.tally.leave(queueRow.id, item)
    transaction.tally.enter(queueRow.id, { ...item, lease: { ...item.lease, deadline } })
    return changeByExtend(item)
  })
}

export function unlease(transaction: Transaction, command: Unlease): { unleased: number } {
  const { database, queueCache } = transaction
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const find = (id: string) => findItem(database, queueRow, command.partition, id)
  const { items } = decideSettle(command.ids, find)
  for (const item of items) rewriteRow(transaction, queueRow, item, unleasedItem(item, command.now))
  return { unleased: items.length }
}

const findSql = `select ${itemColumnList} from items where queue_id = ? and partition = ? and id = ?`

function findItem(database: Database, queueRow: QueueRow, partition: number, id: string): Item | undefined {
  const row = database.array(findSql, queueRow.id, partition, id)
  return row && toItem(row, queueRow.queue.name)
}

/** All or nothing: looks at every item first, and touches none when one is refused. */
function settle(
  { database, queueCache }: Transaction,
  command: Readonly<{ queue: string; partition: number }>,
  ids: readonly string[],
  act: (queueRow: QueueRow, item: Leased, index: number) => ItemChange,
): SettleResult {
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  const { items, refused } = decideSettle(ids, (id) => findItem(database, queueRow, command.partition, id))
  if (refused.length > 0) return { isSettled: false, refused }
  return { isSettled: true, changes: items.map((item, index) => act(queueRow, item, index)) }
}
