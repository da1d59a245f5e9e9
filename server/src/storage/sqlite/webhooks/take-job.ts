/** Leases one named job, for a pull consumer. */
import type { Item, LeasedHead } from '../../../core/items/item.ts'
import type { TakeJob, WebhookResults } from '../../contract/webhooks.ts'
import { itemColumnList, toItem } from '../items/rows.ts'
import { rewriteRow } from '../items/write-rows.ts'
import { redriveLetters } from '../letters/redrive.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'

export function takeJob(transaction: Transaction, command: TakeJob): WebhookResults['take-job'] {
  const { job, queue, holder, deadline, now } = command
  const itemId = 'itemId' in job ? job.itemId : startRedrive(transaction, command, job)
  const queueRow = transaction.queueCache.get(queue)
  const item = itemId === undefined ? undefined : findItem(transaction, queueRow, itemId)
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
  rewriteRow(transaction, queueRow, item, leased)
  return { isTaken: true }
}

/** Returns the id of the item of the redrive; undefined: the job is not dead any more. */
function startRedrive(
  transaction: Transaction,
  { queue, now, audit }: TakeJob,
  { letterId, actor }: Readonly<{ letterId: string; actor: string }>,
): string | undefined {
  const letters = [{ letterId, queue }]
  const command = { op: 'redrive', letters, isDeadAllowed: true, isCapped: false, actor, now } as const
  const [redriven] = redriveLetters(transaction, audit === undefined ? command : { ...command, audit })
  return redriven?.isStarted === true ? redriven.id : undefined
}

function findItem({ database }: Transaction, { id, queue }: QueueRow, itemId: string): Item | undefined {
  const sql = `select ${itemColumnList} from items where queue_id = ? and partition = 0 and id = ?`
  const row = database.getArray(sql, id, itemId)
  return row && toItem(row, queue.name)
}
