import { openLetterStates } from '../../../core/letter-class.ts'
import type { DeleteQueue } from '../../contract/queues.ts'
import { createQueueEntries, createRemovalDetails } from '../../shared/audit-entries.ts'
import { checkHoldsNoOpenLetters, createQueueInUseError } from '../../shared/queue-checks.ts'
import { readNumber } from '../../shared/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { dropSums } from '../counts/letter-count-rollups.ts'
import { countLetters, countLettersByState, toStateCount } from '../items/remove.ts'
import { deletedColumns, endDeletedRows } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import { findDeadQueueUser } from './queues.ts'

/** The tables with rows of a queue, in the order of their deletion, except items and archive. */
const tables = [
  'counts',
  'letter_counts',
  'open_letters',
  'group_hours',
  'groups',
  'letter_edits',
  'produce_keys',
  'lease_ends',
  'partitions',
]

export async function deleteQueue(
  transaction: Transaction,
  command: DeleteQueue,
): Promise<{ removed: number }> {
  const { connection } = transaction
  const queueRow = await transaction.get(command.name)
  const { id } = queueRow
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
  await connection.query(forgetIds, [id])
  const removed = await deleteAllItems(transaction, id)
  // Deleting the letters locked them, so no other transaction changes their counts any more.
  await transaction.flushLetters()
  const letters = countLettersByState((await connection.query(countByState, [id])).map(toStateCount))
  const [purged = {}] = await connection.query(purgeArchive, [id])
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
  return { removed }
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
const purgeArchive: Statement = {
  text: `with gone as (delete from redrive.archive where queue_id = $1 returning 1)
    select count(*) as n from gone`,
  isLong: true,
}
