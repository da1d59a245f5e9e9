/** The numbers of messages by status. */
import type { MessageCounts as CountedMessages } from '../../contract/webhooks.ts'
import { readNumber, readNumberOrNull } from '../../shared/rows/row-values.ts'
import { scheduledStatus, toMessageCounts } from '../../shared/rows/webhook-rows.ts'
import type { Database } from '../connection/database.ts'
import { findChannelNumber } from './entities.ts'

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

export function countMessages(database: Database, channelId: string): CountedMessages {
  const channel = findChannelNumber(database, channelId) ?? 0
  const rows = database.readArrays('select status, n from webhook_message_counts where channel = ?', channel)
  const sql = `select min(due_at) as due_at from webhook_scheduled
    where channel = ? and status = ${scheduledStatus.scheduled}`
  const next = database.get(sql, channel)
  const counted = rows.map((row) => [readNumber(row, 0), readNumber(row, 1)] as const)
  return toMessageCounts(counted, next === undefined ? null : readNumberOrNull(next, 'due_at'))
}
