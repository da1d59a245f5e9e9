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
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { getEntity } from './entities.ts'

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
    ...[channel, id, xid, producerId, contentType, priority, now, headersToText(headers), payload],
  )
  return row && readNumber(row, 'number')
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

  write(database: Database): void {
    const sql = `insert into webhook_message_counts (channel, status, n) values (?, ?, ?)
      on conflict (channel, status) do update set n = n + excluded.n`
    for (const { channel, status, n } of this.#changes.values()) database.run(sql, channel, status, n)
  }
}

const select = `select t.*, c.id as channel_id, p.name as producer_name from webhook_messages t
  join webhook_channels c on c.number = t.channel left join webhook_producers p on p.id = t.producer`

export function readMessages(database: Database, numbers: readonly number[]): Message[] {
  return numbers.flatMap((number) => {
    const row = database.get(`${select} where t.number = ?`, number)
    return row === undefined ? [] : [toMessage(row)]
  })
}

export function getMessage(database: Database, channelId: string, id: string): Message | null {
  const row = database.get(`${select} where c.id = ? and t.id = ?`, channelId, id)
  return row === undefined ? null : toMessage(row)
}

export function listUndispatched(database: Database, { before, countMax }: UndispatchedQuery): number[] {
  const sql = `select number from webhook_messages where status = ${messageStatus.acknowledged} and created_at < ?
    order by created_at, number limit +?`
  const rows = database.arrays(sql, before ?? Number.MAX_SAFE_INTEGER, countMax)
  return rows.map((row) => readNumber(row, 0))
}
