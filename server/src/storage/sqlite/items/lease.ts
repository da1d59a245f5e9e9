import type { Leased } from '../../../core/items/item.ts'
import { addDuration } from '../../../core/time/instant.ts'
import type { LeaseItems } from '../../contract/items.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import type { Values } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { itemColumnList, readPayloadBytes, readRowid, toItem } from './rows.ts'

const readySql = `select ${itemColumnList}, rowid from items
  where queue_id = ? and partition = ? and state = 0 and available_at is null
  order by priority desc, id limit +?`

const leaseSql = `update items
  set state = 1, letter_state = iif(group_id is null, null, 1), attempts = ?, lease_holder = ?, lease_deadline = ?, due_at = ?, updated_at = ?
  where rowid = ?`

export function lease({ database, queueCache, countChanges }: Transaction, command: LeaseItems): Leased[] {
  const { now, holders } = command
  const queueRow = queueCache.getWithPartition(command.queue, command.partition)
  if (queueRow.queue.isPaused || holders.length === 0) return []
  const deadline = addDuration(now, queueRow.queue.leaseTimeoutUs)
  let bytes = 0
  // All callers wait for the writer, so it does not read large items beyond the byte budget.
  const isEnough = (row: Values): boolean => {
    bytes += readPayloadBytes(row)
    return bytes >= stepBytesMax
  }
  const rows = database.readArraysUntil(isEnough, readySql, queueRow.id, command.partition, holders.length)
  return rows.map((row, index) => {
    const item = toItem(row, command.queue)
    if (item.state !== 'waiting') throw new Error(`item ${item.id} is ready but ${item.state}`)
    const { availableAt, ...rest } = item
    const holder = holders[index] as string
    const leased: Leased = {
      ...rest,
      state: 'leased',
      attempts: item.attempts + 1,
      updatedAt: now,
      lease: { holder, deadline },
    }
    database.run(leaseSql, leased.attempts, holder, deadline, deadline, now, readRowid(row))
    countChanges.leave(queueRow.id, item)
    countChanges.enter(queueRow.id, leased)
    return leased
  })
}
