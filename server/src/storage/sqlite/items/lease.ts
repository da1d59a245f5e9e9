import { later } from '../../../core/instant.ts'
import type { Leased } from '../../../core/item.ts'
import type { LeaseItems } from '../../contract/items.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import type { Values } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { itemColumnList, itemColumns, toItem } from './rows.ts'

const readySql = `select ${itemColumnList}, rowid from items
  where queue_id = ? and partition = ? and state = 0 and available_at is null
  order by priority desc, id limit +?`

const rowidPlace = itemColumns.length
const payloadPlace = itemColumns.indexOf('payload')

const leaseSql = `update items
  set state = 1, letter_state = iif(group_id is null, null, 1), attempts = ?, lease_holder = ?, lease_deadline = ?, due_at = ?, updated_at = ?
  where rowid = ?`

export function lease({ database, queueCache, tally }: Transaction, command: LeaseItems): Leased[] {
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  if (queueRow.queue.isPaused || command.holders.length === 0) return []
  const deadline = later(command.now, queueRow.queue.leaseUs)
  let bytes = 0
  // Everybody waits for the writer: of large items it reads no more than are given out.
  const isEnough = (row: Values): boolean => {
    bytes += (row[payloadPlace] as Uint8Array).length
    return bytes >= stepBytesMax
  }
  const asked = command.holders.length
  const rows = database.arraysUntil(isEnough, readySql, queueRow.id, command.partition, asked)
  return rows.map((row, index) => {
    const item = toItem(row, command.queue)
    if (item.state !== 'waiting') throw new Error(`item ${item.id} is ready but ${item.state}`)
    const { availableAt, ...rest } = item
    const holder = command.holders[index] as string
    const leased: Leased = {
      ...rest,
      state: 'leased',
      attempts: item.attempts + 1,
      updatedAt: command.now,
      lease: { holder, deadline },
    }
    database.run(
      leaseSql,
      leased.attempts,
      holder,
      deadline,
      deadline,
      command.now,
      row[rowidPlace] as number,
    )
    tally.leave(queueRow.id, item)
    tally.enter(queueRow.id, leased)
    return leased
  })
}
