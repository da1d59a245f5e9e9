/** Messages: accept them, and read them. */
import { findBroadcastRefusal } from '../../../core/webhook/broadcast.ts'
import type {
  AcceptMessages,
  AcceptResult,
  Message,
  NewMessage,
  UndispatchedQuery,
} from '../../contract/webhooks.ts'
import { headersToText } from '../../shared/item-row.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import { messageStatus, toMessage } from '../../shared/webhook-rows.ts'
import { awaitAll } from '../connection/await-all.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { bytes, int4s, int8s, texts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

type ChannelRow = Readonly<{ number: number; token: string }>
type Accepted = Readonly<{ message: NewMessage; channel: number; at: number; now: number }>

export async function acceptMessages(
  transaction: Transaction,
  commands: readonly AcceptMessages[],
): Promise<AcceptResult[][]> {
  const { connection } = transaction
  const messages = commands.flatMap((command) =>
    command.messages.map((message) => ({ message, now: command.now })),
  )
  const [channels, producers] = await awaitAll([
    readTokens(
      connection,
      'webhook_channels',
      messages.map(({ message }) => message.channelId),
    ),
    readTokens(
      connection,
      'webhook_producers',
      messages.map(({ message }) => message.producerId),
    ),
  ])
  const results: AcceptResult[] = []
  const accepted: Accepted[] = []
  for (const { message, now } of messages) {
    const channel = channels.get(message.channelId)
    const producer = message.producerId === null ? undefined : producers.get(message.producerId)
    const refusal = findBroadcastRefusal(message, channel, producer)
    if (refusal === undefined && channel !== undefined)
      accepted.push({ message, channel: channel.number, at: results.length, now })
    results.push({ isAccepted: false, refusal: refusal ?? 'id-taken' })
  }
  const numbers = await insertMessages(connection, accepted)
  const counts = new MessageCounts()
  for (const { message, channel, at } of accepted) {
    const number = numbers.get(message.xid)
    if (number === undefined) continue
    results[at] = { isAccepted: true, number }
    counts.add(channel, messageStatus.acknowledged, 1)
  }
  await counts.write(connection, transaction.slot)
  let from = 0
  return commands.map((command) => {
    from += command.messages.length
    return results.slice(from - command.messages.length, from)
  })
}

async function readTokens(
  connection: Connection,
  table: 'webhook_channels' | 'webhook_producers',
  ids: readonly (string | null)[],
): Promise<Map<string, ChannelRow>> {
  const number = table === 'webhook_channels' ? 'number' : '0 as number'
  const text = `select id, token, ${number} from redrive.${table} where id = any ($1::text[])`
  const rows = await connection.query({ name: `tokens-${table}`, text }, [texts([...new Set(ids)])])
  return new Map(
    rows.map((row) => [
      readText(row, 'id'),
      { number: readNumber(row, 'number'), token: readText(row, 'token') },
    ]),
  )
}

/** In the order of channel and id, so that two writers with the same ids do not wait for each other. */
const insertStatement: Statement = {
  name: 'insert-messages',
  text: `insert into redrive.webhook_messages
      (channel, id, xid, producer, content_type, priority, status, created_at, headers, payload)
    select u.channel, u.id, u.xid, u.producer, u.content_type, u.priority, ${messageStatus.acknowledged},
      u.created_at, u.headers, u.payload
    from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int4[], $7::int8[], $8::text[],
        $9::bytea[])
      with ordinality as u(channel, id, xid, producer, content_type, priority, created_at, headers, payload, at)
    order by u.channel, u.id, u.at
    on conflict (channel, id) do nothing returning number, xid`,
}

/** Returns the numbers of the messages that were stored, by xid. */
async function insertMessages(
  connection: Connection,
  accepted: readonly Accepted[],
): Promise<Map<string, number>> {
  if (accepted.length === 0) return new Map()
  const messages = accepted.map(({ message }) => message)
  const rows = await connection.query(insertStatement, [
    int4s(accepted.map(({ channel }) => channel)),
    texts(messages.map(({ id }) => id)),
    texts(messages.map(({ xid }) => xid)),
    texts(messages.map(({ producerId }) => producerId)),
    texts(messages.map(({ contentType }) => contentType)),
    int4s(messages.map(({ priority }) => priority)),
    int8s(accepted.map(({ now }) => now)),
    texts(messages.map(({ headers }) => headersToText(headers))),
    bytes(messages.map(({ payload }) => payload)),
  ])
  return new Map(rows.map((row) => [readText(row, 'xid'), readNumber(row, 'number')]))
}

/** The changes that a command makes to the counts of messages. */
export class MessageCounts {
  readonly #changes = new Map<string, { channel: number; status: number; n: number }>()

  add(channel: number, status: number, n: number): void {
    const key = `${channel}/${status}`
    const change = this.#changes.get(key)
    if (change === undefined) this.#changes.set(key, { channel, status, n })
    else change.n += n
  }

  /** Sorted, so that all writers lock the rows in one order. */
  async write(connection: Connection, slot: number): Promise<void> {
    const changes = [...this.#changes.values()].sort(
      (left, right) => left.channel - right.channel || left.status - right.status,
    )
    if (changes.length === 0) return
    await connection.query(writeCounts, [
      int4s(changes.map(({ channel }) => channel)),
      int4s(changes.map(({ status }) => status)),
      int8s(changes.map(({ n }) => n)),
      slot,
    ])
  }
}

const writeCounts: Statement = {
  name: 'write-message-counts',
  text: `insert into redrive.webhook_message_counts as c (channel, status, slot, n)
    select u.channel, u.status, $4::int4, u.n from unnest($1::int4[], $2::int4[], $3::int8[]) as u(channel, status, n)
    on conflict (channel, status, slot) do update set n = c.n + excluded.n`,
}

const select = `select t.*, c.id as channel_id, p.name as producer_name from redrive.webhook_messages t
  join redrive.webhook_channels c on c.number = t.channel
  left join redrive.webhook_producers p on p.id = t.producer`

export async function readMessages(connections: Connections, numbers: readonly number[]): Promise<Message[]> {
  const text = `${select} where t.number = any ($1::int8[])`
  const rows = await connections.read({ name: 'read-messages', text }, [int8s(numbers)])
  return rows.map(toMessage)
}

export async function getMessage(
  connections: Connections,
  channelId: string,
  id: string,
): Promise<Message | null> {
  const text = `${select} where c.id = $1 and t.id = $2`
  const [row] = await connections.read({ name: 'get-message', text }, [channelId, id])
  return row === undefined ? null : toMessage(row)
}

export async function listUndispatched(
  connections: Connections,
  { before, countMax }: UndispatchedQuery,
): Promise<number[]> {
  const text = `select number from redrive.webhook_messages
    where status = ${messageStatus.acknowledged} and created_at < $1::int8 order by created_at, number limit $2`
  const values = [before ?? Number.MAX_SAFE_INTEGER, countMax]
  const rows = await connections.read({ name: 'undispatched-messages', text }, values)
  return rows.map((row) => readNumber(row, 'number'))
}
