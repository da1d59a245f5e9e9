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
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { isLocatedRow, locateRows } from '../items/locate-rows.ts'
import { stateCodes } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'
import { readJobs } from './jobs.ts'
import { MessageCounts } from './message-counts.ts'

export async function listPrunable(
  connections: Connections,
  { before, countMax }: PruneQuery,
): Promise<PrunableMessage[]> {
  const text = `select number, created_at, octet_length(payload) as bytes from redrive.webhook_messages
    where prune_at is not null and prune_at <= $1::int8 order by prune_at, number limit $2`
  return (await connections.read({ name: 'prunable-messages', text }, [before, countMax])).map(toPrunable)
}

const lockMessages: Statement = {
  name: 'lock-prunable',
  text: `select number, channel, id, jobs from redrive.webhook_messages
    where number = any ($1::int8[]) and status = ${messageStatus.dispatched} order by number for update`,
}
/** Delivered jobs never change again. A job that was redriven is a letter, which has its own retention. */
const deleteJobs: Statement = {
  name: 'delete-jobs',
  text: `with wanted as materialized (
      select q.id as queue_id, 0 as partition, w.item_id as id
      from unnest($1::int4[], $2::text[]) as w(consumer, item_id)
        join redrive.webhook_consumers k on k.number = w.consumer join redrive.queues q on q.name = k.queue
    ), gone as (
      delete from redrive.items t using wanted w cross join ${locateRows('w')} p
      where ${isLocatedRow('t', 'p')} and t.state = ${stateCodes.done} returning t.queue_id
    )
    select queue_id, count(*)::int4 as n from gone group by queue_id order by queue_id`,
}
const deleteMessages: Statement = {
  name: 'delete-messages',
  text: 'delete from redrive.webhook_messages where number = any ($1::int8[])',
}
const deleteScheduled: Statement = {
  name: 'delete-scheduled',
  text: `delete from redrive.webhook_scheduled s using unnest($1::int4[], $2::text[]) as w(channel, id)
    where s.channel = w.channel and s.id = w.id and s.status = ${scheduledStatus.dispatched} returning s.channel`,
}
const postponeMessages: Statement = {
  name: 'postpone-pruning',
  text: `update redrive.webhook_messages m set prune_at = w.prune_at
    from unnest($1::int8[], $2::int8[]) as w(number, prune_at) where m.number = w.number`,
}

export async function pruneMessages(
  transaction: Transaction,
  { numbers, postponed }: PruneMessages,
): Promise<WebhookResults['prune-messages']> {
  const { connection } = transaction
  const locked = await connection.query(lockMessages, [encodeInt8s(numbers)])
  const rows = await keepPrunable(transaction, locked)
  const removed = rows.map((row) => readNumber(row, 'number'))
  if (rows.length > 0) await removeMessages(transaction, rows, removed)
  if (postponed.length > 0) {
    await connection.query(postponeMessages, [
      encodeInt8s(postponed.map(({ number }) => number)),
      encodeInt8s(postponed.map(({ pruneAt }) => pruneAt)),
    ])
  }
  return { removed }
}

async function keepPrunable({ connection }: Transaction, rows: readonly Row[]): Promise<Row[]> {
  const jobs = rows.map(listJobs)
  const states = await readJobs((statement, values) => connection.query(statement, values), jobs.flat())
  let at = 0
  return rows.filter((_, index) => {
    const count = jobs[index]?.length ?? 0
    at += count
    return states.slice(at - count, at).every(isPrunableState)
  })
}

async function removeMessages(
  { connection, countChanges, slot }: Transaction,
  rows: readonly Row[],
  numbers: readonly number[],
): Promise<void> {
  const jobs = rows.flatMap(listJobs)
  const gone = await connection.query(deleteJobs, [
    encodeInt4s(jobs.map(({ consumerNumber }) => consumerNumber)),
    encodeTexts(jobs.map(({ itemId }) => itemId)),
  ])
  for (const row of gone) {
    const [queueId, count] = [readNumber(row, 'queue_id'), readNumber(row, 'n')]
    countChanges.add(queueId, 0, 'done', -count)
    countChanges.add(queueId, 0, 'forgotten', count)
  }
  await connection.query(deleteMessages, [encodeInt8s(numbers)])
  const channels = rows.map((row) => readNumber(row, 'channel'))
  const ids = rows.map((row) => readText(row, 'id'))
  const scheduled = await connection.query(deleteScheduled, [encodeInt4s(channels), encodeTexts(ids)])
  const counts = new MessageCounts()
  for (const channel of channels) counts.add(channel, messageStatus.dispatched, -1)
  for (const row of scheduled)
    counts.add(readNumber(row, 'channel'), scheduledStatus.dispatched + scheduledCountOffset, -1)
  await counts.write(connection, slot)
}

function listJobs(row: Row) {
  return jobsFromText(readTextOrNull(row, 'jobs'))
}
