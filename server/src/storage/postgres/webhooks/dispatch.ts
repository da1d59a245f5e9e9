/** The fan-out of messages: creates their jobs and sets them to DISPATCHED, in one transaction. */
import { addDuration } from '../../../core/time/instant.ts'
import { createJobIds } from '../../../core/webhook/job-id.ts'
import type { Consumer, DispatchMessages, DispatchResult, JobLocation } from '../../contract/webhooks.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { jobsToText, messageStatus } from '../../shared/rows/webhook-rows.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { encodeBytes, encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { stateCodes } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { listConsumersOfChannels } from './consumers.ts'
import { MessageCounts } from './message-counts.ts'

/** Messages that another server dispatches now are skipped. They are locked before any partition. */
const lockMessages: Statement = {
  name: 'lock-undispatched',
  text: `select number, channel, id, content_type, priority from redrive.webhook_messages
    where number = any ($1::int8[]) and status = ${messageStatus.acknowledged} order by number
    for update skip locked`,
}
const setDispatched: Statement = {
  name: 'set-dispatched',
  text: `update redrive.webhook_messages m
    set status = ${messageStatus.dispatched}, dispatched_at = $3::int8, jobs = u.jobs, prune_at = m.created_at
    from unnest($1::int8[], $2::text[]) as u(number, jobs) where m.number = u.number`,
}
const insertJobs: Statement = {
  name: 'insert-jobs',
  text: `insert into redrive.items_live (queue_id, partition, created_at, updated_at, expire_deadline, attempts,
      attempts_max, priority, redrives, state, is_sourced, id, encoding, reference, key, message, payload)
    select u.queue_id, 0, $8::int8, $8::int8, u.expire_deadline, 0, 0, u.priority, 0, ${stateCodes.waiting}, false,
      u.id, u.encoding, u.reference, u.key, u.message, ''::bytea
    from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::int8[], $7::int4[], $9::int8[])
      as u(queue_id, id, encoding, reference, key, message, priority, expire_deadline)`,
}

type MessageRow = Readonly<{
  number: number
  channel: number
  key: Uint8Array
  contentType: string
  priority: number
  nextId: () => string
  jobs: JobLocation[]
}>
type Job = Readonly<{ queueRow: QueueRow; message: MessageRow; itemId: string; jobId: string }>

export async function dispatchMessages(
  transaction: Transaction,
  { numbers, now }: DispatchMessages,
): Promise<DispatchResult> {
  const { connection } = transaction
  const rows = await connection.query(lockMessages, [encodeInt8s(numbers)])
  if (rows.length === 0) return { dispatched: [], jobs: [] }
  const messages = rows.map((row) => toMessageRow(row, now))
  const channels = Map.groupBy(messages, (message) => message.channel)
  const consumers = await listConsumersOfChannels(connection, [...channels.keys()])
  const queueRows = await lockQueues(transaction, [...consumers.values()].flat())
  const jobs: Job[] = []
  const counts = new MessageCounts()
  const created: DispatchResult['jobs'][number][] = []
  for (const [channel, own] of channels) {
    for (const consumer of consumers.get(channel) ?? []) {
      // An operator can delete a queue by force. That must not stop the fan-out to the other consumers.
      const queueRow = queueRows.get(consumer.queue)
      if (queueRow === undefined) continue
      jobs.push(...createJobs(transaction, consumer, queueRow, own, now))
      created.push({ queue: consumer.queue, count: own.length })
    }
    counts.add(channel, messageStatus.acknowledged, -own.length)
    counts.add(channel, messageStatus.dispatched, own.length)
  }
  await writeJobs(transaction, jobs, now)
  await connection.query(setDispatched, [
    encodeInt8s(messages.map(({ number }) => number)),
    encodeTexts(messages.map((message) => jobsToText(message.jobs))),
    now,
  ])
  await counts.write(connection, transaction.slot)
  return { dispatched: messages.map(({ number }) => number), jobs: created }
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

/** A consumer that is deleted now has no row any more once its partition is locked: the write runs again. */
async function lockQueues(
  transaction: Transaction,
  consumers: readonly Consumer[],
): Promise<Map<string, QueueRow>> {
  const names = consumers.map(({ queue }) => queue)
  await transaction.load(names)
  const queueRows = new Map<string, QueueRow>()
  for (const name of names) {
    const queueRow = transaction.getLoaded(name)
    if (queueRow !== undefined) queueRows.set(name, queueRow)
  }
  await transaction.lockPartitions([...queueRows.values()].map((queueRow) => ({ queueRow, partition: 0 })))
  return queueRows
}

function createJobs(
  transaction: Transaction,
  consumer: Consumer,
  queueRow: QueueRow,
  messages: readonly MessageRow[],
  now: number,
): Job[] {
  const ids = transaction.allocateIds(queueRow, 0, now, messages.length)
  return messages.map((message, index) => {
    const itemId = ids[index] as string
    message.jobs.push({ consumerNumber: consumer.number, itemId })
    transaction.countChanges.addWaiting(queueRow.id, 0, now)
    return { queueRow, message, itemId, jobId: message.nextId() }
  })
}

async function writeJobs({ connection }: Transaction, jobs: readonly Job[], now: number): Promise<void> {
  if (jobs.length === 0) return
  await connection.query(insertJobs, [
    encodeInt4s(jobs.map(({ queueRow }) => queueRow.id)),
    encodeTexts(jobs.map(({ itemId }) => itemId)),
    encodeTexts(jobs.map(({ message }) => message.contentType)),
    encodeTexts(jobs.map(({ jobId }) => jobId)),
    encodeBytes(jobs.map(({ message }) => message.key)),
    encodeInt8s(jobs.map(({ message }) => message.number)),
    encodeInt4s(jobs.map(({ message }) => message.priority)),
    now,
    encodeInt8s(jobs.map(({ queueRow }) => addDuration(now, queueRow.queue.expireTimeoutUs))),
  ])
}
