/** The fan-out of messages: creates their jobs and sets them to DISPATCHED, in one transaction. */
import { createJobIds } from '../../../core/webhook/job-id.ts'
import type { Consumer, DispatchMessages, DispatchResult, JobLocation } from '../../contract/webhooks.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { jobsToText, messageStatus } from '../../shared/rows/webhook-rows.ts'
import type { Database, Row } from '../connection/database.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { listConsumersOfChannel } from './consumers.ts'
import { MessageCounts } from './message-counts.ts'

const waitingSql = `select number, channel, id, content_type, priority from webhook_messages
  where number = ? and status = ${messageStatus.acknowledged}`
const dispatchedSql = `update webhook_messages set status = ${messageStatus.dispatched}, dispatched_at = ?, jobs = ?, prune_at = created_at
  where number = ?`

type MessageRow = Readonly<{
  number: number
  channel: number
  key: Uint8Array
  contentType: string
  priority: number
  nextId: () => string
  jobs: JobLocation[]
}>

export function dispatchMessages(transaction: Transaction, command: DispatchMessages): DispatchResult {
  const { database } = transaction
  const messages = command.numbers.flatMap((number): MessageRow[] => {
    const row = database.get(waitingSql, number)
    return row === undefined ? [] : [toMessageRow(row, command.now)]
  })
  const counts = new MessageCounts()
  const jobs: DispatchResult['jobs'][number][] = []
  for (const [channel, own] of Map.groupBy(messages, (message) => message.channel)) {
    for (const consumer of listConsumersOfChannel(database, channel)) {
      // An operator can delete a queue by force. That must not stop the fan-out to the other consumers.
      const queueRow = transaction.queueCache.find(consumer.queue)
      if (queueRow === undefined) continue
      createJobs(transaction, consumer, queueRow, own, command.now)
      jobs.push({ queue: consumer.queue, count: own.length })
    }
    counts.add(channel, messageStatus.acknowledged, -own.length)
    counts.add(channel, messageStatus.dispatched, own.length)
  }
  for (const { number, jobs: own } of messages) {
    database.run(dispatchedSql, command.now, jobsToText(own), number)
  }
  counts.write(database)
  return { dispatched: messages.map(({ number }) => number), jobs }
}

function toMessageRow(row: Row, now: number): MessageRow {
  const number = readNumber(row, 'number')
  return {
    number,
    channel: readNumber(row, 'channel'),
    key: new TextEncoder().encode(readText(row, 'id')),
    contentType: readText(row, 'content_type'),
    priority: readNumber(row, 'priority'),
    nextId: createJobIds(number, now),
    jobs: [],
  }
}

const insertSql = `insert into items (queue_id, partition, id, root_id, state, attempts, attempts_max, priority, kind,
    encoding, reference, key, created_at, updated_at, expire_deadline, redrives, message, payload)
  values (?1, 0, ?2, ?2, 0, 0, 0, ?3, '', ?4, ?5, ?6, ?7, ?7, ?8, 0, ?9, x'')`

function createJobs(
  { database, queueCache, countChanges }: Transaction,
  consumer: Consumer,
  queueRow: QueueRow,
  messages: readonly MessageRow[],
  now: number,
): void {
  const ids = queueCache.allocateIds(queueRow, 0, now, messages.length, countChanges)
  for (const [index, message] of messages.entries()) {
    const itemId = ids[index] as string
    insertJob(database, queueRow, message, itemId, now)
    message.jobs.push({ consumerNumber: consumer.number, itemId })
  }
  countChanges.addWaiting(queueRow.id, 0, now, messages.length)
  countChanges.add(queueRow.id, 0, 'accepted', messages.length)
}

function insertJob(
  database: Database,
  { id, queue }: QueueRow,
  { number, key, contentType, priority, nextId }: MessageRow,
  itemId: string,
  now: number,
): void {
  const expireDeadline = Math.min(now + queue.expireTimeoutUs, Number.MAX_SAFE_INTEGER)
  database.run(insertSql, id, itemId, priority, contentType, nextId(), key, now, expireDeadline, number)
}
