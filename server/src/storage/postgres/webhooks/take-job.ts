/** Leases one named job, for a pull consumer. */
import type { ItemHead, LeasedHead } from '../../../core/items/item.ts'
import type { TakeJob, WebhookResults } from '../../contract/webhooks.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { insertLeaseEnds } from '../items/lease-ends.ts'
import { toItemHead } from '../items/rows.ts'
import { lockItems } from '../items/settle.ts'
import { rewriteRows } from '../items/write-rows.ts'
import { redriveLetters } from '../letters/redrive.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'

export async function takeJob(
  transaction: Transaction,
  command: TakeJob,
): Promise<WebhookResults['take-job']> {
  const { job, queue, holder, deadline, now } = command
  const itemId = 'itemId' in job ? job.itemId : await startRedrive(transaction, command, job)
  const queueRow = await transaction.get(queue)
  const item = itemId === undefined ? undefined : await lockItem(transaction, queueRow, itemId)
  if (item?.state !== 'waiting') return { isTaken: false }
  const { availableAt, givenLeaseDeadline, ...rest } = item
  const attempts = 'itemId' in job ? item.attempts + 1 : job.attempts
  const leased: LeasedHead = {
    ...rest,
    state: 'leased',
    attempts,
    updatedAt: now,
    lease: { holder, deadline },
  }
  const after = { queueId: queueRow.id, queue: queueRow.queue, item: leased }
  await rewriteRows(transaction, [{ before: item, after }])
  await insertLeaseEnds(transaction.connection, [{ queueId: queueRow.id, item: leased }])
  return { isTaken: true }
}

/** Returns the id of the item of the redrive; undefined: the job is not dead any more. */
async function startRedrive(
  transaction: Transaction,
  { queue, now, audit }: TakeJob,
  { letterId, actor }: Readonly<{ letterId: string; actor: string }>,
): Promise<string | undefined> {
  const letters = [{ letterId, queue }]
  const command = { op: 'redrive', letters, isDeadAllowed: true, isCapped: false, actor, now } as const
  const [redriven] = await redriveLetters(transaction, audit === undefined ? command : { ...command, audit })
  return redriven?.isStarted === true ? redriven.id : undefined
}

async function lockItem(
  { connection }: Transaction,
  { id, queue }: QueueRow,
  itemId: string,
): Promise<ItemHead | undefined> {
  const [row] = await connection.query(lockItems, [
    encodeInt4s([id]),
    encodeInt4s([0]),
    encodeTexts([itemId]),
  ])
  return row && toItemHead(row, queue.name)
}
