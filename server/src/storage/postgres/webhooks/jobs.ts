/** Jobs: their states, and the bytes of their messages. */

import { locateRedrivenItem } from '../../../core/dead-letters/letter-decisions.ts'
import type { ItemHead } from '../../../core/items/item.ts'
import type { JobLocation, JobState } from '../../contract/webhooks.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { toJobState } from '../../shared/rows/webhook-rows.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { readHeadColumns, toItemHead } from '../items/rows.ts'

const headOf = (alias: string) => readHeadColumns.map((name) => `${alias}.${name}`).join(', ')

/** The rows of each job: the item that was created with it, and its letter. */
const jobRows: Statement = {
  name: 'job-rows',
  text: `with wanted as materialized (
      select w.at, w.item_id, q.id as queue_id, q.name as queue, d.id as dead_queue_id, d.name as dead_queue
      from unnest($1::int4[], $2::text[]) with ordinality as w(consumer, item_id, at)
        join redrive.webhook_consumers k on k.number = w.consumer
        join redrive.queues q on q.name = k.queue join redrive.queues d on d.name = k.dead_queue
    )
    select w.at, w.queue as queue_name, false as is_letter, ${headOf('t')} from wanted w cross join lateral (
        select f.* from redrive.items_live f
        where f.queue_id = w.queue_id and f.partition = 0 and f.id = w.item_id offset 0) t
    union all
    select w.at, w.dead_queue, true, ${headOf('t')} from wanted w cross join lateral (
        select f.* from redrive.items_sourced f
        where f.source_id = w.item_id and f.queue_id = w.dead_queue_id offset 0) t`,
}
const itemRows: Statement = {
  name: 'job-items',
  text: `select w.at, q.name as queue_name, ${headOf('t')}
    from unnest($1::text[], $2::text[]) with ordinality as w(queue, id, at)
      join redrive.queues q on q.name = w.queue
      cross join lateral (select f.* from redrive.items_live f
        where f.queue_id = q.id and f.partition = 0 and f.id = w.id offset 0) t`,
}

type Query = (statement: Statement, values: Parameters<Connections['read']>[1]) => Promise<readonly Row[]>

/** `query`: of a transaction, or for reading. */
export async function readJobs(query: Query, jobs: readonly JobLocation[]): Promise<JobState[]> {
  if (jobs.length === 0) return []
  const rows = await query(jobRows, [
    encodeInt4s(jobs.map(({ consumerNumber }) => consumerNumber)),
    encodeTexts(jobs.map(({ itemId }) => itemId)),
  ])
  const first = toHeads(rows.filter((row) => row.is_letter === false))
  const letters = toHeads(rows.filter((row) => row.is_letter === true))
  const redriven = jobs.map((_, at) => {
    const letter = letters.get(at)
    return letter && locateRedrivenItem(letter)
  })
  const items = redriven.some((location) => location !== undefined)
    ? toHeads(
        await query(itemRows, [
          encodeTexts(redriven.map((location) => location?.queue ?? '')),
          encodeTexts(redriven.map((location) => location?.id ?? '')),
        ]),
      )
    : new Map<number, ItemHead>()
  return jobs.map((_, at) => {
    const letter = letters.get(at)
    return toJobState(letter === undefined ? first.get(at) : items.get(at), letter)
  })
}

/** By the position of the job, from 0. */
function toHeads(rows: readonly Row[]): Map<number, ItemHead> {
  return new Map(rows.map((row) => [readNumber(row, 'at') - 1, toItemHead(row, readText(row, 'queue_name'))]))
}

/**
 * The bytes of a row `t` of items, for its letter. The bytes of a job are in its message.
 */
export const ownHeaders = `case when t.message is null then t.headers
  else (select b.headers from redrive.webhook_messages b where b.number = t.message) end`
export const ownPayload = `case when t.message is null then t.payload
  else coalesce((select b.payload from redrive.webhook_messages b where b.number = t.message), t.payload) end`
