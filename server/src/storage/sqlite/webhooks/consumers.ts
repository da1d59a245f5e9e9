/** Consumers, each with its queue and its dead queue. */

import { nameConsumerQueues } from '../../../core/webhook/consumer-queues.ts'
import { consumerPolicy } from '../../../core/webhook/delivery-policy.ts'
import { checkCondition, decidePut } from '../../../core/webhook/put.ts'
import type {
  Consumer,
  ConsumerCounts,
  ConsumersQuery,
  DeleteConsumer,
  PutConsumer,
  PutResult,
  WebhookResults,
} from '../../contract/webhooks.ts'
import { createQueueEntries } from '../../shared/audit/audit-entries.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { toConsumer, toConsumerCounts } from '../../shared/rows/webhook-rows.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import { deleteQueue } from '../queues/delete-queue.ts'
import { createQueue, updateQueue } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { findChannelNumber, readPage } from './entities.ts'

export function putConsumer(transaction: Transaction, command: PutConsumer): PutResult<Consumer> {
  const { database } = transaction
  const { channelId, id, name, token, callbackUrl, type, condition, now } = command
  const channel = findChannelNumber(database, channelId)
  if (channel === undefined) return { outcome: 'channel-missing' }
  const before = getConsumer(database, channelId, id) ?? undefined
  const isSame =
    before?.name === name &&
    before.token === token &&
    before.callbackUrl === callbackUrl &&
    before.type === type
  const decision = decidePut(before, isSame, condition, now)
  const target = `${channelId}/${id}`
  if (decision.outcome === 'create' || decision.outcome === 'update')
    insertAudit(database, createQueueEntries(command.audit, target, 1, { name, callbackUrl, type }))
  switch (decision.outcome) {
    case 'create':
      insertConsumer(transaction, command, channel, decision.changedAt)
      return { outcome: 'created', row: getConsumer(database, channelId, id) as Consumer }
    case 'update': {
      const { number, queue, type: typeBefore } = before as Consumer
      database.run(
        'update webhook_consumers set name = ?, token = ?, callback_url = ?, type = ?, changed_at = ? where number = ?',
        ...[name, token, callbackUrl, type, decision.changedAt, number],
      )
      if (type !== typeBefore) {
        const changes = consumerPolicy(type, command.rules)
        updateQueue(database, transaction.queueCache, { op: 'update-queue', name: queue, changes, now })
      }
      return { outcome: 'updated', row: getConsumer(database, channelId, id) as Consumer }
    }
    case 'unchanged':
      return { outcome: 'unchanged', row: before as Consumer }
    default:
      return { outcome: decision.outcome }
  }
}

function insertConsumer(
  { database, queueCache }: Transaction,
  command: PutConsumer,
  channel: number,
  changedAt: number,
): void {
  const { channelId, id, name, token, xid, callbackUrl, type, rules, now } = command
  const isTaken = (queueName: string) => queueCache.find(queueName) !== undefined
  const { queue, deadQueue } = nameConsumerQueues(channelId, id, xid, isTaken)
  createQueue(database, queueCache, { op: 'create-queue', queue: { name: deadQueue }, now })
  const policy = { ...consumerPolicy(type, rules), deadQueue }
  createQueue(database, queueCache, { op: 'create-queue', queue: { ...policy, name: queue }, now })
  database.run(
    `insert into webhook_consumers
       (channel, id, name, token, xid, created_at, changed_at, callback_url, type, queue, dead_queue)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[channel, id, name, token, xid, now, changedAt, callbackUrl, type, queue, deadQueue],
  )
}

export function deleteConsumer(
  transaction: Transaction,
  { channelId, id, condition, audit }: DeleteConsumer,
): WebhookResults['delete-consumer'] {
  const { database } = transaction
  const consumer = getConsumer(database, channelId, id)
  if (consumer === null) return { refusal: 'missing' }
  const refusal = checkCondition(consumer.changedAt, condition)
  if (refusal !== undefined) return { refusal }
  if (countJobs(database, consumer) > 0) return { refusal: 'has-jobs' }
  const { number, queue, deadQueue } = consumer
  database.run('delete from webhook_consumers where number = ?', number)
  for (const name of [queue, deadQueue]) {
    // The queues have no jobs, so a step is enough unless many letters were discarded or archived.
    while (deleteQueue(transaction, { op: 'delete-queue', name, isForced: true }).isMore);
  }
  insertAudit(database, createQueueEntries(audit, `${channelId}/${id}`, 1, {}))
  return { refusal: null }
}

/** The jobs in both queues, without discarded letters. */
function countJobs(database: Database, { queue, deadQueue }: Consumer): number {
  const sql = `select coalesce(sum(c.waiting + c.scheduled + c.leased + c.done + c.dead), 0) as n
    from counts c join queues q on q.id = c.queue_id where q.name in (?, ?)`
  const row = database.get(sql, queue, deadQueue)
  return row === undefined ? 0 : readNumber(row, 'n')
}

const select = `select t.*, c.id as channel_id from webhook_consumers t
  join webhook_channels c on c.number = t.channel`

export function getConsumer(database: Database, channelId: string, id: string): Consumer | null {
  const row = database.get(`${select} where c.id = ? and t.id = ?`, channelId, id)
  return row === undefined ? null : toConsumer(row)
}

export function getConsumerByNumber(database: Database, number: number): Consumer | undefined {
  const row = database.get(`${select} where t.number = ?`, number)
  return row && toConsumer(row)
}

export function listConsumersByQueue(database: Database, queues: readonly string[]): Consumer[] {
  return queues.flatMap((queue) => {
    const row = database.get(`${select} where t.queue = ?`, queue)
    return row === undefined ? [] : [toConsumer(row)]
  })
}

export function listConsumersByNumber(database: Database, numbers: readonly number[]): Consumer[] {
  return numbers.flatMap((number) => getConsumerByNumber(database, number) ?? [])
}

/** In the order of their numbers, which is the order of the fan-out. */
export function listConsumersOfChannel(database: Database, channel: number): Consumer[] {
  return database.all(`${select} where t.channel = ? order by t.number`, channel).map(toConsumer)
}

export function listConsumers(database: Database, query: ConsumersQuery): Consumer[] {
  const channel = findChannelNumber(database, query.channelId)
  if (channel === undefined) return []
  return readPage(database, `${select} where t.channel = ?`, [channel], query).map(toConsumer)
}

const countsSql = (condition: string) => `select t.*, c.id as channel_id, c.name as channel_name,
    sum(iif(q.name = t.queue, n.waiting + n.scheduled, 0)) as queued,
    sum(iif(q.name = t.queue, n.leased, 0)) as inflight,
    sum(n.done) as delivered,
    sum(iif(q.name = t.dead_queue, n.waiting + n.scheduled + n.dead, 0)) as dead,
    sum(iif(q.name = t.dead_queue, n.accepted, 0)) as died
  from webhook_consumers t join webhook_channels c on c.number = t.channel
    join queues q on q.name in (t.queue, t.dead_queue) join counts n on n.queue_id = q.id
  ${condition} group by t.number order by t.number`

export function listConsumerCounts(database: Database, channelId?: string): ConsumerCounts[] {
  const rows =
    channelId === undefined
      ? database.all(countsSql(''))
      : database.all(countsSql('where c.id = ?'), channelId)
  return rows.map(toConsumerCounts)
}
