/** Moves ended items to the archive, and deletes old items from it. */
import type { Archive } from '../../contract/archive.ts'
import type { LetterResults, PurgeArchive } from '../../contract/letters.ts'
import type { Results } from '../../contract/storage.ts'
import { createQueueEntries } from '../../shared/audit/audit-entries.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import { archiveDetails, listStatesToArchive } from '../../shared/letters/archive-rules.ts'
import { readNumber, readNumberOrNull } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { encodeInt4s } from '../connection/encode-arrays.ts'
import { isLocatedRow } from '../items/locate-rows.ts'
import { countRemoved, sumRemovedSql } from '../items/remove.ts'
import { columnNames, stateCodes } from '../items/rows.ts'
import { readWithClassLock } from '../queues/queue-locks.ts'
import type { Transaction } from '../transaction.ts'

const list = columnNames.join(', ')

/**
 * One statement moves the rows: exactly the rows that are deleted are inserted. Searches state by state, so
 * that items in states that are not archived are not read by every run. The statement is planned each time,
 * because the right index depends on whether there are letters.
 *
 * `$6`: the number of payload bytes that ends the step. Rows beyond it are locked but stay.
 */
export const archiveEnded: Statement = {
  text: `with found as materialized (
      select r.table_id, r.location, ${sumBefore('r.bytes', 'r.ended_at, r.id')} as bytes_before
      from unnest($5::int4[]) as s(state) cross join lateral (
        select t.tableoid as table_id, t.ctid as location, t.ended_at, t.id, octet_length(t.payload) as bytes from redrive.items t
        where t.queue_id = $1 and t.state = s.state and t.ended_at < $2
        order by t.ended_at, t.id limit $3 for update of t skip locked
      ) r order by r.ended_at, r.id limit $3
    ), picked as materialized (
      select f.table_id, f.location from found f where f.bytes_before < $6
    ), gone as (
      delete from redrive.items t using picked p
      where ${isLocatedRow('t', 'p')}
      returning t.*
    ), kept as (
      insert into redrive.archive (${list}, is_sourced, archived_at) select ${list}, is_sourced, $4 from gone
    ), summed as (${sumRemovedSql})
    select s.*, (select count(*)::int4 from found) as found from summed s`,
}

export async function archive(transaction: Transaction, command: Archive): Promise<Results['archive']> {
  const queueRow = await transaction.get(command.queue)
  const { id } = queueRow
  const { queue } = command.states === 'by-class' ? await readWithClassLock(transaction, queueRow) : queueRow
  const states = listStatesToArchive(command, queue)
  const codes = encodeInt4s(states.map((state) => stateCodes[state]))
  const values = [id, command.endedBefore, command.countMax, command.now, codes, stepBytesMax]
  const rows = await transaction.connection.query(archiveEnded, values)
  const archived = countRemoved(transaction, rows, 'archived')
  const letters = rows.filter((row) => readNumberOrNull(row, 'group_id') !== null)
  const letterCount = letters.reduce((sum, row) => sum + readNumber(row, 'n'), 0)
  const details = archiveDetails(command, states, letterCount)
  const entries = createQueueEntries(command.audit, command.queue, archived, details)
  await insertAudit(transaction.connection, entries)
  return { archived, isMore: isMoreFound(rows, archived, command.countMax) }
}

/** The sum of a column over the rows that come earlier in the order. */
function sumBefore(column: string, order: string): string {
  return `coalesce(sum(${column}) over (order by ${order} rows between unbounded preceding and 1 preceding), 0)`
}

/** Each row has the number of rows that were found before the limit of bytes. */
function isMoreFound([row]: readonly Row[], taken: number, countMax: number): boolean {
  return row !== undefined && (taken < readNumber(row, 'found') || taken === countMax)
}

/** Deletes the edited versions and the other ids of letters too. */
const purge: Statement = {
  text: `with found as materialized (
      select r.location, ${sumBefore('r.bytes', 'r.archived_at, r.id')} as bytes_before from (
        select t.ctid as location, t.archived_at, t.id, octet_length(t.payload) as bytes from redrive.archive t
        where t.queue_id = $1 and t.archived_at < $2
        order by t.archived_at, t.id limit $3 for update skip locked
      ) r
    ), picked as materialized (
      select f.location from found f where f.bytes_before < $4
    ), gone as (
      delete from redrive.archive t using picked p where t.ctid = p.location
      returning t.partition, coalesce(t.root_id, t.id) as letter_id, t.origin is not null as is_letter
    ), edits as (
      delete from redrive.letter_edits e using gone g where g.is_letter and e.letter_id = g.letter_id
    ), ids as (
      delete from redrive.letter_ids e using gone g where g.is_letter and e.letter_id = g.letter_id
    )
    select g.partition, count(*)::int4 as n, (select count(*)::int4 from found) as found from gone g group by g.partition`,
}

export async function purgeArchive(
  transaction: Transaction,
  command: PurgeArchive,
): Promise<LetterResults['purge-archive']> {
  const { archivedBefore, countMax } = command
  const { id } = await transaction.get(command.queue)
  const { connection, countChanges } = transaction
  let purged = 0
  const rows = await connection.query(purge, [id, archivedBefore, countMax, stepBytesMax])
  for (const row of rows) {
    const [partition, n] = [readNumber(row, 'partition'), readNumber(row, 'n')]
    countChanges.add(id, partition, 'archived', -n)
    countChanges.add(id, partition, 'purged', n)
    purged += n
  }
  await insertAudit(connection, createQueueEntries(command.audit, command.queue, purged, { letters: purged }))
  return { purged, isMore: isMoreFound(rows, purged, countMax) }
}
