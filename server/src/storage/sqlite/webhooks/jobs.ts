/** Jobs: their states, and the bytes of their messages. */

import { locateRedrivenItem } from '../../../core/dead-letters/letter-decisions.ts'
import type { Item, ItemBytes, ItemHead } from '../../../core/items/item.ts'
import type { JobLocation, JobState } from '../../contract/webhooks.ts'
import { decodeHeaders } from '../../shared/items/item-row.ts'
import { readBytes, readTextOrNull } from '../../shared/rows/row-values.ts'
import { toJobState } from '../../shared/rows/webhook-rows.ts'
import type { Database } from '../connection/database.ts'
import { headColumnList, toItemHead } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import { readQueueIds } from '../queues/queue-names.ts'
import { getConsumerByNumber } from './consumers.ts'

const itemSql = `select ${headColumnList} from items where queue_id = ? and partition = 0 and id = ?`
const letterSql = `select ${headColumnList} from items where queue_id = ? and source_id = ?`

export function readJobs(database: Database, jobs: readonly JobLocation[]): JobState[] {
  return jobs.map(({ consumerNumber, itemId }) => {
    const consumer = getConsumerByNumber(database, consumerNumber)
    if (consumer === undefined) return null
    const [queueId] = readQueueIds(database, [consumer.queue])
    const [deadQueueId] = readQueueIds(database, [consumer.deadQueue])
    if (queueId === undefined || deadQueueId === undefined) return null
    const find = (sql: string, id: number, value: string, queue: string): ItemHead | undefined => {
      const row = database.getArray(sql, id, value)
      return row && toItemHead(row, queue)
    }
    const first = find(itemSql, queueId, itemId, consumer.queue)
    const letter = first === undefined ? find(letterSql, deadQueueId, itemId, consumer.deadQueue) : undefined
    const redriven = letter && locateRedrivenItem(letter)
    const item =
      redriven?.queue === consumer.queue ? find(itemSql, queueId, redriven.id, consumer.queue) : first
    return toJobState(item, letter)
  })
}

const bytesSql = `select m.payload, m.headers from items i join webhook_messages m on m.number = i.message
  where i.queue_id = ? and i.partition = ? and i.id = ?`

/** The bytes of an item, for its letter. The bytes of a job are in its message. */
export function readOwnBytes(database: Database, { id: queueId, queue }: QueueRow, item: Item): ItemBytes {
  if (queue.delivery === undefined || item.letterId !== null) return item
  const row = database.get(bytesSql, queueId, item.partition, item.id)
  if (row === undefined) return item
  const headers = decodeHeaders(readTextOrNull(row, 'headers'))
  return { key: item.key, headers, payload: readBytes(row, 'payload') }
}
