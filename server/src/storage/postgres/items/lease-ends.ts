/**
 * The ends of leases, in the table `lease_ends`.
 *
 * No index contains the lease of a row, so a lease writes only a new version of the row into the same page.
 * (Entries in indexes were two thirds of the cost of a lease.) Instead, each batch of leases inserts one row
 * into `lease_ends` with the ids of its items and the deadline. An id stays there after its lease is settled;
 * at the deadline the item is looked up, and is no longer leased.
 */

import type { LeasedHead } from '../../../core/items/item.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { stateCodes } from './rows.ts'

export type LeasedRow = Readonly<{ queueId: number; item: LeasedHead }>

const insertEnds: Statement = {
  name: 'insert-lease-ends',
  text: `insert into redrive.lease_ends (queue_id, partition, deadline, ids)
    select e.queue_id, e.partition, e.deadline, array_agg(e.id order by e.id)
    from unnest($1::int4[], $2::int4[], $3::int8[], $4::text[]) as e(queue_id, partition, deadline, id)
    group by e.queue_id, e.partition, e.deadline`,
}

/** Call it in the transaction that stores the items as leased. */
export async function insertLeaseEnds(connection: Connection, rows: readonly LeasedRow[]): Promise<void> {
  if (rows.length === 0) return
  await connection.query(insertEnds, [
    encodeInt4s(rows.map(({ queueId }) => queueId)),
    encodeInt4s(rows.map(({ item }) => item.partition)),
    encodeInt8s(rows.map(({ item }) => item.lease.deadline)),
    encodeTexts(rows.map(({ item }) => item.id)),
  ])
}

/** The items of `ends` that are still leased and were not extended. */
const stillLeased = `lateral (
    select i.id, f.lease_deadline from unnest(ends.ids) as i(id) cross join lateral (
      select t.state, t.lease_deadline from redrive.items t
      where t.queue_id = ends.queue_id and t.partition = ends.partition and t.id = i.id offset 0
    ) f
    where f.state = ${stateCodes.leased} and f.lease_deadline <= ends.deadline
  )`

/**
 * Reads ended leases without locks: one row for each, or one row without an id for a batch whose leases are
 * all settled.
 */
export const peekEnded: Statement = {
  name: 'peek-ended',
  text: `select ends.number, ends.deadline, ends.queue_id, ends.partition, q.name, s.id
    from (select * from redrive.lease_ends where deadline <= $1 order by deadline, number limit $2) ends
      join redrive.queues q on q.id = ends.queue_id
      left join ${stillLeased} s on true
    order by ends.deadline, s.id`,
}

/** `number`: of the batch of leases. `id`: null if no lease of the batch is left. */
export type LeaseEnd = Readonly<{
  number: number
  deadline: Instant
  queueId: number
  partition: number
  queue: string
  id: string | null
}>

/** From a row of `peekEnded`. */
export function toLeaseEnd(row: Row): LeaseEnd {
  return {
    number: readNumber(row, 'number'),
    deadline: readNumber(row, 'deadline'),
    queueId: readNumber(row, 'queue_id'),
    partition: readNumber(row, 'partition'),
    queue: readText(row, 'name'),
    id: readTextOrNull(row, 'id'),
  }
}

export const deleteEnds: Statement = {
  name: 'delete-lease-ends',
  text: 'delete from redrive.lease_ends where number = any ($1::int8[])',
}

const batchesReadMax = 20
const idsReadMax = 500
/**
 * The first deadline of a lease. Runs every second, and most leases that it looks up are already settled. So
 * it stops after `idsReadMax` ids, not only after `batchesReadMax` batches: to look up 20 batches of 1,000
 * ids took a tenth of a second.
 */
export const firstEnd: Statement = {
  name: 'first-lease-end',
  text: `with first as materialized (
      select * from redrive.lease_ends order by deadline, number limit ${batchesReadMax}
    ), summed as materialized (
      select f.*, sum(cardinality(f.ids)) over (order by f.deadline, f.number) - cardinality(f.ids) as ids_before from first f
    ), looked as materialized (
      select * from summed where ids_before < ${idsReadMax}
    )
    select coalesce(
      (select min(ends.deadline) from looked ends
        where exists (select from ${stillLeased} s)),
      -- None of the leases that were read is left. The next pass then runs at the last deadline that was read,
      -- and continues from there.
      (select max(deadline) from looked
        having count(*) = ${batchesReadMax} or count(*) < (select count(*) from summed))) as deadline`,
}
