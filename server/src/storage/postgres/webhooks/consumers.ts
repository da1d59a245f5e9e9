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
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { toConsumer, toConsumerCounts } from '../../shared/rows/webhook-rows.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Connection } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { deleteQueue } from '../queues/delete-queue.ts'
import { createQueue, updateQueue } from '../queues/queues.ts'
import type { Transaction } from '../transaction.ts'
import { findChannelNumber, readPage } from './entities.ts'

/** The caller holds the lock on the definitions of all queues, which also serialises changes of consumers. */
export async function putConsumer(
  transaction: Transaction,
  command: PutConsumer,
): Promise<PutResult<Consumer>> {
  const { connection } = transaction
  const { channelId, id, name, token, callbackUrl, type, condition, now } = command
  const channel = await findChannelNumber(connection, channelId)
  if (channel === undefined) return { outcome: 'channel-missing' }
  const before = await findConsumer(connection, channelId, id)
  const isSame =
    before?.name === name &&
    before.token === token &&
    before.callbackUrl === callbackUrl &&
    before.type === type
  const decision = decidePut(before, isSame, condition, now)
  const target = `${channelId}/${id}`
  if (decision.outcome === 'create' || decision.outcome === 'update')
    await insertAudit(connection, createQueueEntries(command.audit, target, 1, { name, callbackUrl, type }))
  switch (decision.outcome) {
    case 'create':
      await insertConsumer(transaction, command, channel, decision.changedAt)
      return { outcome: 'created', row: (await findConsumer(connection, channelId, id)) as Consumer }
    case 'update': {
      const { number, queue, type: typeBefore } = before as Consumer
      const text = `update redrive.webhook_consumers
        set name = $1, token = $2, callback_url = $3, type = $4, changed_at = $5 where number = $6`
      await connection.query({ text }, [name, token, callbackUrl, type, decision.changedAt, number])
      if (type !== typeBefore) {
        const changes = consumerPolicy(type, command.rules)
        await updateQueue(transaction, { op: 'update-queue', name: queue, changes, now })
      }
      return { outcome: 'updated', row: (await findConsumer(connection, channelId, id)) as Consumer }
    }
    case 'unchanged':
      return { outcome: 'unchanged', row: before as Consumer }
    default:
      return { outcome: decision.outcome }
  }
}

async function insertConsumer(
  transaction: Transaction,
  command: PutConsumer,
  channel: number,
  changedAt: number,
): Promise<void> {
  const { connection } = transaction
  const { channelId, id, name, token, xid, callbackUrl, type, rules, now } = command
  const first = nameConsumerQueues(channelId, id, xid, () => false)
  const taken = await connection.query(
    { text: 'select name from redrive.queues where name = any ($1::text[])' },
    [encodeTexts([first.queue, first.deadQueue])],
  )
  const takenNames = new Set(taken.map((row) => readText(row, 'name')))
  const { queue, deadQueue } = nameConsumerQueues(channelId, id, xid, (queueName) =>
    takenNames.has(queueName),
  )
  await createQueue(transaction, { op: 'create-queue', queue: { name: deadQueue }, now })
  const policy = { ...consumerPolicy(type, rules), deadQueue }
  await createQueue(transaction, { op: 'create-queue', queue: { ...policy, name: queue }, now })
  await connection.query(
    {
      text: `insert into redrive.webhook_consumers
          (channel, id, name, token, xid, created_at, changed_at, callback_url, type, queue, dead_queue)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    },
    [channel, id, name, token, xid, now, changedAt, callbackUrl, type, queue, deadQueue],
  )
}

export async function deleteConsumer(
  transaction: Transaction,
  { channelId, id, condition, audit }: DeleteConsumer,
): Promise<WebhookResults['delete-consumer']> {
  const { connection } = transaction
  const consumer = await findConsumer(connection, channelId, id)
  if (consumer === undefined) return { refusal: 'missing' }
  const refusal = checkCondition(consumer.changedAt, condition)
  if (refusal !== undefined) return { refusal }
  const { number, queue, deadQueue } = consumer
  const queueRow = await transaction.get(queue)
  // From here on no fan-out can add a job.
  await transaction.lockPartitions([{ queueRow, partition: 0 }])
  if ((await countJobs(connection, consumer)) > 0) return { refusal: 'has-jobs' }
  await connection.query({ text: 'delete from redrive.webhook_consumers where number = $1' }, [number])
  for (const name of [queue, deadQueue]) {
    // The queues have no jobs, so a step is enough unless many letters were discarded or archived.
    while ((await deleteQueue(transaction, { op: 'delete-queue', name, isForced: true })).isMore);
  }
  await insertAudit(connection, createQueueEntries(audit, `${channelId}/${id}`, 1, {}))
  return { refusal: null }
}

/** The jobs in both queues, without discarded letters. */
async function countJobs(connection: Connection, { queue, deadQueue }: Consumer): Promise<number> {
  const text = `select coalesce(sum(c.waiting + c.scheduled + c.leased + c.done + c.dead), 0)::int8 as n
    from redrive.counts c join redrive.queues q on q.id = c.queue_id where q.name = any ($1::text[])`
  const [row] = await connection.query({ text }, [encodeTexts([queue, deadQueue])])
  return row === undefined ? 0 : readNumber(row, 'n')
}

export const selectConsumers = `select t.*, c.id as channel_id from redrive.webhook_consumers t
  join redrive.webhook_channels c on c.number = t.channel`
const byId = `${selectConsumers} where c.id = $1 and t.id = $2`

async function findConsumer(
  connection: Connection,
  channelId: string,
  id: string,
): Promise<Consumer | undefined> {
  const [row] = await connection.query({ text: byId }, [channelId, id])
  return row && toConsumer(row)
}

export async function getConsumer(
  connections: Connections,
  channelId: string,
  id: string,
): Promise<Consumer | null> {
  const [row] = await connections.read({ name: 'get-consumer', text: byId }, [channelId, id])
  return row === undefined ? null : toConsumer(row)
}

export async function listConsumersByQueue(
  connections: Connections,
  queues: readonly string[],
): Promise<Consumer[]> {
  const text = `${selectConsumers} where t.queue = any ($1::text[])`
  const rows = await connections.read({ name: 'consumers-by-queue', text }, [encodeTexts(queues)])
  return rows.map(toConsumer)
}

export async function listConsumersByNumber(
  connections: Connections,
  numbers: readonly number[],
): Promise<Consumer[]> {
  const text = `${selectConsumers} where t.number = any ($1::int4[])`
  const rows = await connections.read({ name: 'consumers-by-number', text }, [encodeInt4s(numbers)])
  return rows.map(toConsumer)
}

/** Grouped by channel, in the order of their numbers, which is the order of the fan-out. */
export async function listConsumersOfChannels(
  connection: Connection,
  channels: readonly number[],
): Promise<Map<number, Consumer[]>> {
  const text = `${selectConsumers} where t.channel = any ($1::int4[]) order by t.number`
  const rows = await connection.query({ name: 'consumers-of-channels', text }, [encodeInt4s(channels)])
  const byChannel = Map.groupBy(rows, (row) => readNumber(row, 'channel'))
  return new Map([...byChannel].map(([channel, own]) => [channel, own.map(toConsumer)]))
}

export async function listConsumers(connections: Connections, query: ConsumersQuery): Promise<Consumer[]> {
  const rows = await readPage(connections, `${selectConsumers} where c.id = $1`, [query.channelId], query)
  return rows.map(toConsumer)
}

const countsText = (condition: string) => `select t.*, s.* from (
    ${selectConsumers.replace('c.id as channel_id', 'c.id as channel_id, c.name as channel_name')} ${condition}
  ) t cross join lateral (
    select coalesce(sum(n.waiting + n.scheduled) filter (where q.name = t.queue), 0)::int8 as queued,
      coalesce(sum(n.leased) filter (where q.name = t.queue), 0)::int8 as inflight,
      coalesce(sum(n.done), 0)::int8 as delivered,
      coalesce(sum(n.waiting + n.scheduled + n.dead) filter (where q.name = t.dead_queue), 0)::int8 as dead,
      coalesce(sum(n.accepted) filter (where q.name = t.dead_queue), 0)::int8 as died
    from redrive.queues q join redrive.counts n on n.queue_id = q.id
    where q.name in (t.queue, t.dead_queue)
  ) s order by t.number`

export async function listConsumerCounts(
  connections: Connections,
  channelId?: string,
): Promise<ConsumerCounts[]> {
  const rows =
    channelId === undefined
      ? await connections.read({ name: 'consumer-counts', text: countsText('') })
      : await connections.read({ name: 'channel-counts', text: countsText('where c.id = $1') }, [channelId])
  return rows.map(toConsumerCounts)
}
