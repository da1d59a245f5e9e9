/** Reads messages. */
import type { Message, MessageHead, MessagesQuery, UndispatchedQuery } from '../../contract/webhooks.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import {
  listedStatuses,
  mergePages,
  messageStatus,
  toMessage,
  toMessageHead,
} from '../../shared/rows/webhook-rows.ts'
import type { Database } from '../connection/database.ts'
import { findChannelNumber, readPage } from './entities.ts'

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
  const rows = database.readArrays(sql, before ?? Number.MAX_SAFE_INTEGER, countMax)
  return rows.map((row) => readNumber(row, 0))
}

export function listMessages(
  database: Database,
  table: 'webhook_messages' | 'webhook_scheduled',
  query: MessagesQuery,
): MessageHead[] {
  const channel = findChannelNumber(database, query.channelId)
  if (channel === undefined) return []
  const sql = `select t.id, t.xid, t.created_at from ${table} t where t.channel = ? and t.status = ?`
  const pages = listedStatuses(query).map((status) =>
    readPage(database, sql, [channel, status], query).map(toMessageHead),
  )
  return mergePages(pages, query)
}
