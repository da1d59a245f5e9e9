/** The numbers of messages by status. */
import type { MessageCounts as CountedMessages } from '../../contract/webhooks.ts'
import { readNumber, readNumberOrNull } from '../../shared/rows/row-values.ts'
import { scheduledStatus, toMessageCounts } from '../../shared/rows/webhook-rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s } from '../connection/encode-arrays.ts'

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
      encodeInt4s(changes.map(({ channel }) => channel)),
      encodeInt4s(changes.map(({ status }) => status)),
      encodeInt8s(changes.map(({ n }) => n)),
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

export async function countMessages(connections: Connections, channelId: string): Promise<CountedMessages> {
  const text = `with c as (select number from redrive.webhook_channels where id = $1)
    select n.status, sum(n.n)::int8 as n, null::int8 as due_at from redrive.webhook_message_counts n join c on c.number = n.channel
    group by n.status
    union all
    select 0, 0, (select min(s.due_at) from redrive.webhook_scheduled s
      where s.channel = (select number from c) and s.status = ${scheduledStatus.scheduled})`
  const rows = await connections.read({ name: 'count-messages', text }, [channelId])
  const next = rows.find((row) => readNumber(row, 'status') === 0)
  const counted = rows.map((row) => [readNumber(row, 'status'), readNumber(row, 'n')] as const)
  return toMessageCounts(counted, next === undefined ? null : readNumberOrNull(next, 'due_at'))
}
