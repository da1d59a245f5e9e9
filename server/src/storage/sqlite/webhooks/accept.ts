/** Stores messages that are broadcast. */
import { findBroadcastRefusal } from '../../../core/webhook/broadcast.ts'
import type { AcceptMessages, AcceptResult, NewMessage } from '../../contract/webhooks.ts'
import { encodeHeaders } from '../../shared/items/item-row.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { messageStatus, scheduledCountOffset, scheduledStatus } from '../../shared/rows/webhook-rows.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { getEntity } from './entities.ts'
import { MessageCounts } from './message-counts.ts'
import { insertScheduled } from './scheduled.ts'

type ChannelRow = Readonly<{ number: number; token: string }>

export function acceptMessages({ database }: Transaction, command: AcceptMessages): AcceptResult[] {
  const counts = new MessageCounts()
  const results = command.messages.map((message): AcceptResult => {
    const channel = findChannel(database, message.channelId)
    const producer =
      message.producerId === null ? undefined : getEntity(database, 'webhook_producers', message.producerId)
    const refusal = findBroadcastRefusal(message, channel, producer)
    if (refusal !== undefined || channel === undefined)
      return { isAccepted: false, refusal: refusal ?? 'channel-missing' }
    if (message.dueAt !== null) {
      const isStored = insertScheduled(database, channel.number, message, message.dueAt, command.now)
      if (!isStored) return { isAccepted: false, refusal: 'id-taken' }
      counts.add(channel.number, scheduledStatus.scheduled + scheduledCountOffset, 1)
      return { isAccepted: true, number: null }
    }
    const number = insertMessage(database, channel.number, message, command.now)
    if (number === undefined) return { isAccepted: false, refusal: 'id-taken' }
    counts.add(channel.number, messageStatus.acknowledged, 1)
    return { isAccepted: true, number }
  })
  counts.write(database)
  return results
}

function findChannel(database: Database, id: string): ChannelRow | undefined {
  const row = database.get('select number, token from webhook_channels where id = ?', id)
  return row && { number: readNumber(row, 'number'), token: readText(row, 'token') }
}

const insertSql = `insert into webhook_messages
    (channel, id, xid, producer, content_type, priority, status, created_at, headers, payload)
  values (?, ?, ?, ?, ?, ?, ${messageStatus.acknowledged}, ?, ?, ?)
  on conflict (channel, id) do nothing returning number`

/** Undefined: the channel has a message with this id. */
function insertMessage(
  database: Database,
  channel: number,
  { id, xid, producerId, contentType, priority, headers, payload }: NewMessage,
  now: number,
): number | undefined {
  const row = database.get(
    insertSql,
    ...[channel, id, xid, producerId, contentType, priority, now, encodeHeaders(headers), payload],
  )
  return row && readNumber(row, 'number')
}
