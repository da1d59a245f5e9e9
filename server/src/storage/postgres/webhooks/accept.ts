/** Stores messages that are broadcast. */
import { findBroadcastRefusal } from '../../../core/webhook/broadcast.ts'
import type { AcceptMessages, AcceptResult } from '../../contract/webhooks.ts'
import { encodeHeaders } from '../../shared/items/item-row.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { messageStatus, scheduledCountOffset, scheduledStatus } from '../../shared/rows/webhook-rows.ts'
import { awaitAll } from '../connection/await-all.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeBytes, encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'
import { MessageCounts } from './message-counts.ts'
import { type AcceptedMessage, insertScheduled } from './scheduled.ts'

type ChannelRow = Readonly<{ number: number; token: string }>

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
  const accepted: AcceptedMessage[] = []
  for (const { message, now } of messages) {
    const channel = channels.get(message.channelId)
    const producer = message.producerId === null ? undefined : producers.get(message.producerId)
    const refusal = findBroadcastRefusal(message, channel, producer)
    if (refusal === undefined && channel !== undefined)
      accepted.push({ message, channel: channel.number, at: results.length, now })
    results.push({ isAccepted: false, refusal: refusal ?? 'id-taken' })
  }
  await storeAccepted(transaction, accepted, results)
  let from = 0
  return commands.map((command) => {
    from += command.messages.length
    return results.slice(from - command.messages.length, from)
  })
}

/** Stores the messages whose ids are free, counts them, and sets their results. */
async function storeAccepted(
  { connection, slot }: Transaction,
  accepted: readonly AcceptedMessage[],
  results: AcceptResult[],
): Promise<void> {
  const regular = await insertMessages(connection, accepted.filter(isRegular))
  const scheduled = await insertScheduled(
    connection,
    accepted.filter((each) => !isRegular(each)),
  )
  const counts = new MessageCounts()
  for (const each of accepted) {
    const { xid } = each.message
    const number = isRegular(each) ? regular.get(xid) : scheduled.has(xid) ? null : undefined
    if (number === undefined) continue
    results[each.at] = { isAccepted: true, number }
    const status =
      number === null ? scheduledStatus.scheduled + scheduledCountOffset : messageStatus.acknowledged
    counts.add(each.channel, status, 1)
  }
  await counts.write(connection, slot)
}

function isRegular({ message }: AcceptedMessage): boolean {
  return message.dueAt === null
}

async function readTokens(
  connection: Connection,
  table: 'webhook_channels' | 'webhook_producers',
  ids: readonly (string | null)[],
): Promise<Map<string, ChannelRow>> {
  const number = table === 'webhook_channels' ? 'number' : '0 as number'
  const text = `select id, token, ${number} from redrive.${table} where id = any ($1::text[])`
  const rows = await connection.query({ name: `tokens-${table}`, text }, [encodeTexts([...new Set(ids)])])
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
  accepted: readonly AcceptedMessage[],
): Promise<Map<string, number>> {
  if (accepted.length === 0) return new Map()
  const messages = accepted.map(({ message }) => message)
  const rows = await connection.query(insertStatement, [
    encodeInt4s(accepted.map(({ channel }) => channel)),
    encodeTexts(messages.map(({ id }) => id)),
    encodeTexts(messages.map(({ xid }) => xid)),
    encodeTexts(messages.map(({ producerId }) => producerId)),
    encodeTexts(messages.map(({ contentType }) => contentType)),
    encodeInt4s(messages.map(({ priority }) => priority)),
    encodeInt8s(accepted.map(({ now }) => now)),
    encodeTexts(messages.map(({ headers }) => encodeHeaders(headers))),
    encodeBytes(messages.map(({ payload }) => payload)),
  ])
  return new Map(rows.map((row) => [readText(row, 'xid'), readNumber(row, 'number')]))
}
