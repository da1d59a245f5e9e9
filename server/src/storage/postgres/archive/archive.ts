import type { Archive } from '../../contract/archive.ts'
import type { LetterResults, PurgeArchive } from '../../contract/letters.ts'
import type { Results } from '../../contract/storage.ts'
import { archiveDetails, statesToArchive } from '../../shared/archive-rules.ts'
import { queueEntries } from '../../shared/audit-entries.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { int4s } from '../connection/encode-arrays.ts'
import { isLocatedRow } from '../items/locate-rows.ts'
import { countRemoved, sumRemovedSql } from '../items/remove.ts'
import { columnNames, stateCodes } from '../items/rows.ts'
import { readWithClassLock } from '../queues/queue-locks.ts'
import type { Transaction } from '../transaction.ts'

const list = columnNames.join(', ')

/**
 * One statement moves: exactly the rows that are deleted are the ones that are inserted. Each state is
 * looked for by itself: what stays is then not looked at again by every run. Planned each time: which index is
 * the right one shows only when there are letters.
 *
 * `$6` is how many bytes of payload end it. What was looked at and is too much for this time was locked for nothing.
 */
export const archiveEnded: Statement = {
  text: `with found as materialized (
      select r.table_id, r.location, ${bytesBefore('r.bytes', 'r.ended_at, r.id')} as bytes_before
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
  const states = statesToArchive(command, queue)
  const codes = int4s(states.map((state) => stateCodes[state]))
  const values = [id, command.endedBefore, command.countMax, command.now, codes, stepBytesMax]
  const rows = await transaction.connection.query(archiveEnded, values)
  const archived = countRemoved(transaction, rows, 'archived')
  const letters = rows.reduce((sum, row) => sum + (row.group_id === null ? 0 : (row.n as number)), 0)
  const details = archiveDetails(command, states, letters)
  const entries = queueEntries(command.trace, command.queue, archived, details)
  await insertAudit(transaction.connection, entries)
  return { archived, isMore: isCut(rows, archived, command.countMax) }
}

/** The bytes of those that come earlier in the order. */
function bytesBefore(bytes: string, order: string): string {
  return `coalesce(sum(${bytes}) over (order by ${order} rows between unbounded preceding and 1 preceding), 0)`
}

/** `found`, which each of the rows has: how many might have gone. */
function isCut([row]: readonly Row[], went: number, countMax: number): boolean {
  return row !== undefined && (went < (row.found as number) || went === countMax)
}

/** Edited versions go with their letters. */
const purge: Statement = {
  text: `with found as materialized (
      select r.place, ${bytesBefore('r.bytes', 'r.archived_at, r.id')} as bytes_before from (
        select t.ctid as place, t.archived_at, t.id, octet_length(t.payload) as bytes from redrive.archive t
        where t.queue_id = $1 and t.archived_at < $2
        order by t.archived_at, t.id limit $3 for update skip locked
      ) r
    ), picked as materialized (
      select f.place from found f where f.bytes_before < $4
    ), gone as (
      delete from redrive.archive t using picked p where t.ctid = p.place
      returning t.partition, coalesce(t.root_id, t.id) as letter_id, t.origin is not null as is_letter
    ), edits as (
      delete from redrive.letter_edits e using gone g where g.is_letter and e.letter_id = g.letter_id
    )
    select g.partition, count(*)::int4 as n, (select count(*)::int4 from found) as found from gone g group by g.partition`,
}

export async function purgeArchive(
  transaction: Transaction,
  command: PurgeArchive,
): Promise<LetterResults['purge-archive']> {
  const { archivedBefore, countMax } = command
  const { id } = await transaction.get(command.queue)
  const { connection, tally } = transaction
  let purged = 0
  const rows = await connection.query(purge, [id, archivedBefore, countMax, stepBytesMax])
  for (const row of rows) {
    const [partition, n] = [row.partition, row.n] as [number, number]
    tally.add(id, partition, 'archived', -n)
    tally.add(id, partition, 'purged', n)
    purged += n
  }
  await insertAudit(connection, queueEntries(command.trace, command.queue, purged, { letters: purged }))
  return { purged, isMore: isCut(rows, purged, countMax) }
}
