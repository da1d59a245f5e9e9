import { openLetterStates } from '../../../core/dead-letters/letter-class.ts'
import type { DeleteQueue, DeleteQueueResult } from '../../contract/queues.ts'
import { createQueueEntries, createRemovalDetails } from '../../shared/audit/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import {
  checkHoldsNoOpenLetters,
  createQueueInUseError,
  createQueueNotFoundError,
} from '../../shared/items/queue-checks.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { purgeArchive } from '../archive/archive.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { dropSums } from '../counts/letter-count-rollups.ts'
import { countLetters, countLettersByState, deleteStep, toStateCount } from '../items/remove.ts'
import { deletedColumns, endDeletedRows } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import type { QueueRow } from './queue-cache.ts'
import { recordQueueDeletion } from './queue-deletions.ts'
import { findDeadQueueUser } from './queues.ts'

/** The tables with rows of a queue, in the order of their deletion, except items and archive. */
const tables = [
  'counts',
  'letter_counts',
  'open_letters',
  'group_hours',
  'groups',
  'group_lifecycles',
  'group_notices',
  'letter_edits',
  'produce_keys',
  'lease_ends',
  'queue_deletions',
  'partitions',
]

export async function deleteQueue(
  transaction: Transaction,
  command: DeleteQueue,
): Promise<DeleteQueueResult> {
  const { connection } = transaction
  const queueRow = await transaction.get(command.name)
  const { id } = queueRow
  if (command.createdAt !== undefined && command.createdAt !== queueRow.queue.createdAt) {
    throw createQueueNotFoundError(command.name)
  }
  const user = await findDeadQueueUser(transaction, command.name)
  if (user !== undefined) throw createQueueInUseError(command.name, user)
  // The queue may have millions of letters.
  await connection.query({ text: 'set local statement_timeout = 0' })
  // Lock the partitions first, so that no writer can add an item from here on. The row of the queue is
  // deleted last: writers that wait for it hold no lock that this transaction needs.
  await connection.query(lockPartitions, [id])
  if (command.isForced !== true) {
    checkHoldsNoOpenLetters(queueRow.queue, await countLetters(transaction, queueRow, openLetterStates))
  }
  const step =
    command.countMax === undefined ? undefined : await deleteSome(transaction, queueRow, command.countMax)
  if (step !== undefined) {
    await recordQueueDeletion(transaction, id, command)
    const details = { ...step.details, isMore: true }
    await insertAudit(connection, createQueueEntries(command.audit, command.name, 1, details))
    return { removed: step.removed, isMore: true }
  }
  await connection.query(forgetIds, [id])
  const removed = await deleteAllItems(transaction, id)
  // Deleting the letters locked them, so no other transaction changes their counts any more.
  await transaction.flushLetters()
  const letters = countLettersByState((await connection.query(countByState, [id])).map(toStateCount))
  const [purged = {}] = await connection.query(deleteArchive, [id])
  const archived = readNumber(purged, 'n')
  const details = { ...createRemovalDetails(removed, letters), ...(archived > 0 && { archived }) }
  await insertAudit(connection, createQueueEntries(command.audit, command.name, 1, details))
  await dropSums(connection, id, transaction.slot)
  for (const table of tables) {
    await connection.query({ text: `delete from redrive.${table} where queue_id = $1`, isLong: true }, [id])
  }
  await connection.query({ text: 'delete from redrive.queues where id = $1', isLong: true }, [id])
  // After the row of the queue, because records of lease calls hold it (lease-calls.ts).
  await connection.query({ text: 'delete from redrive.lease_calls where queue_id = $1' }, [id])
  transaction.countChanges.dropQueue(id)
  transaction.setChanged(command.name, undefined)
  return { removed, isMore: false }
}

type Step = Readonly<{ removed: number; details: Readonly<Record<string, unknown>> }>

/** Deletes some of the items, or of the archived ones. Undefined: so few are left that none was deleted. */
async function deleteSome(
  transaction: Transaction,
  queueRow: QueueRow,
  countMax: number,
): Promise<Step | undefined> {
  const items = await deleteStep(transaction, queueRow, countMax)
  if (items !== undefined)
    return { removed: items.removed, details: createRemovalDetails(items.removed, items.letters) }
  const sizes = await transaction.connection.query(archivedSizes, [queueRow.id, countMax])
  if (!takeStep(sizes, (row) => readNumber(row, 'bytes'), countMax).isMore) return undefined
  const all = { queue: queueRow.queue.name, archivedBefore: Number.MAX_SAFE_INTEGER, countMax }
  const { purged } = await purgeArchive(transaction, { op: 'purge-archive', ...all })
  return { removed: 0, details: { archived: purged } }
}

/** In the order of `purgeArchive`. */
const archivedSizes: Statement = {
  text: `select octet_length(payload) as bytes from redrive.archive where queue_id = $1
    order by archived_at, id limit $2`,
}

const lockPartitions: Statement = {
  text: 'select from redrive.partitions where queue_id = $1 order by partition for update',
  isLong: true,
}

/** Deletes the other ids of the letters of a queue. */
const forgetIds: Statement = {
  text: `delete from redrive.letter_ids l using (
      select coalesce(f.root_id, f.id) as letter_id from redrive.items_sourced f
      where f.queue_id = $1 and f.group_id is not null
      union all select coalesce(f.root_id, f.id) from redrive.archive f
      where f.queue_id = $1 and f.group_id is not null
    ) f where l.letter_id = f.letter_id`,
  isLong: true,
}

/**
 * Deletes the items of a queue. The first row of the result has their number; the others are the deleted
 * items that were redrives, and the deleted letters with a redrive in progress.
 */
const deleteItemsOfQueue: Statement = {
  text: `with gone as (delete from redrive.items where queue_id = $1 returning ${deletedColumns.join(', ')})
    select count(*) as removed, ${deletedColumns.map((name) => `null as ${name}`).join(', ')} from gone
    union all select null, letter_id, redrives::text, state::text, letter from gone
    where (letter_id is not null and state <= 2) or (letter is not null and state = 2)`,
  isLong: true,
}

/** Returns the number of deleted items. */
async function deleteAllItems(transaction: Transaction, queueId: number): Promise<number> {
  const [sum = {}, ...rows] = await transaction.connection.query(deleteItemsOfQueue, [queueId])
  // The numbers come as texts, because in the first row these columns are untyped nulls.
  const deleted = rows.map(
    (row): Row => ({ ...row, redrives: Number(row.redrives), state: Number(row.state) }),
  )
  await endDeletedRows(transaction, deleted, transaction.now())
  return readNumber(sum, 'removed')
}

const countByState: Statement = {
  text: `select c.state, sum(c.n)::int8 as n from redrive.letter_sums c where c.queue_id = $1
    group by c.state having sum(c.n) <> 0`,
}
const deleteArchive: Statement = {
  text: `with gone as (delete from redrive.archive where queue_id = $1 returning 1)
    select count(*) as n from gone`,
  isLong: true,
}
