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
import type { Connections } from '../connection/connections.ts'
import { encodeInt8s } from '../connection/encode-arrays.ts'
import { readPage } from './entities.ts'

const select = `select t.*, c.id as channel_id, p.name as producer_name from redrive.webhook_messages t
  join redrive.webhook_channels c on c.number = t.channel
  left join redrive.webhook_producers p on p.id = t.producer`

export async function readMessages(connections: Connections, numbers: readonly number[]): Promise<Message[]> {
  const text = `${select} where t.number = any ($1::int8[])`
  const rows = await connections.read({ name: 'read-messages', text }, [encodeInt8s(numbers)])
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

export async function listMessages(
  connections: Connections,
  table: 'webhook_messages' | 'webhook_scheduled',
  query: MessagesQuery,
): Promise<MessageHead[]> {
  const text = `select t.id, t.xid, t.created_at from redrive.${table} t
    where t.channel = (select number from redrive.webhook_channels where id = $1) and t.status = $2`
  const pages = await Promise.all(
    listedStatuses(query).map(async (status) =>
      (await readPage(connections, text, [query.channelId, status], query)).map(toMessageHead),
    ),
  )
  return mergePages(pages, query)
}
