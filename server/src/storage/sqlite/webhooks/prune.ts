/** Removes messages whose jobs are all delivered, and postpones the others. */
import type { PrunableMessage, PruneMessages, PruneQuery, WebhookResults } from '../../contract/webhooks.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import {
  isPrunableState,
  jobsFromText,
  messageStatus,
  scheduledCountOffset,
  scheduledStatus,
  toPrunable,
} from '../../shared/rows/webhook-rows.ts'
import type { Database } from '../connection/database.ts'
import { headColumnList, toItemHead } from '../items/rows.ts'
import { deleteRow } from '../items/write-rows.ts'
import type { Transaction } from '../transaction.ts'
import { getConsumerByNumber } from './consumers.ts'
import { readJobs } from './jobs.ts'
import { MessageCounts } from './message-counts.ts'

export function listPrunable(database: Database, { before, countMax }: PruneQuery): PrunableMessage[] {
  const sql = `select number, created_at, length(payload) as bytes from webhook_messages
    where prune_at is not null and prune_at <= ? order by prune_at, number limit +?`
  return database.all(sql, before, countMax).map(toPrunable)
}

const selectSql = `select number, channel, id, jobs from webhook_messages
  where number = ? and status = ${messageStatus.dispatched}`

export function pruneMessages(
  transaction: Transaction,
  { numbers, postponed }: PruneMessages,
): WebhookResults['prune-messages'] {
  const { database } = transaction
  const counts = new MessageCounts()
  const removed: number[] = []
  for (const number of numbers) {
    const row = database.get(selectSql, number)
    if (row === undefined) continue
    const jobs = jobsFromText(readTextOrNull(row, 'jobs'))
    if (!readJobs(database, jobs).every(isPrunableState)) continue
    for (const { consumerNumber, itemId } of jobs) removeJob(transaction, consumerNumber, itemId)
    const channel = readNumber(row, 'channel')
    database.run('delete from webhook_messages where number = ?', number)
    counts.add(channel, messageStatus.dispatched, -1)
    const scheduled = database.run(
      `delete from webhook_scheduled where channel = ? and id = ? and status = ${scheduledStatus.dispatched}`,
      channel,
      readText(row, 'id'),
    )
    counts.add(channel, scheduledStatus.dispatched + scheduledCountOffset, -scheduled)
    removed.push(number)
  }
  for (const { number, pruneAt } of postponed) {
    database.run('update webhook_messages set prune_at = ? where number = ?', pruneAt, number)
  }
  counts.write(database)
  return { removed }
}

const itemSql = `select ${headColumnList} from items where queue_id = ? and partition = 0 and id = ?`

/** A job that was redriven is a letter, which has a retention of its own. */
function removeJob(transaction: Transaction, consumerNumber: number, itemId: string): void {
  const { database, queueCache, countChanges } = transaction
  const consumer = getConsumerByNumber(database, consumerNumber)
  const queueRow = consumer && queueCache.find(consumer.queue)
  const row = queueRow && database.getArray(itemSql, queueRow.id, itemId)
  if (queueRow === undefined || row === undefined) return
  deleteRow(transaction, queueRow, toItemHead(row, queueRow.queue.name))
  countChanges.add(queueRow.id, 0, 'forgotten')
}
