/**
 * When leases end.
 *
 * That a row is leased, and until when, stands in no index: so leasing it writes one new version of the
 * row into the same page, and nothing else. (Two thirds of what a lease cost were its entries in
 * indexes.) Instead each batch of leases leaves one row here with the ids and the time at which they end. A
 * lease that is settled before leaves its id behind; when the time comes it is looked up, and is not there.
 */
import type { LeasedHead } from '../../../core/item.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import { stateCodes } from './rows.ts'

export type LeasedRow = Readonly<{ queueId: number; item: LeasedHead }>

const insertEnds: Statement = {
  name: 'note-lease-ends',
  text: `insert into redrive.lease_ends (queue_id, partition, deadline, ids)
    select e.queue_id, e.partition, e.deadline, array_agg(e.id order by e.id)
    from unnest($1::int4[], $2::int4[], $3::int8[], $4::text[]) as e(queue_id, partition, deadline, id)
    group by e.queue_id, e.partition, e.deadline`,
}

/** In the transaction that stores them as leased. */
export async function insertLeaseEnds(connection: Connection, rows: readonly LeasedRow[]): Promise<void> {
  if (rows.length === 0) return
  await connection.query(insertEnds, [
    int4s(rows.map(({ queueId }) => queueId)),
    int4s(rows.map(({ item }) => item.partition)),
    int8s(rows.map(({ item }) => item.lease.deadline)),
    texts(rows.map(({ item }) => item.id)),
  ])
}

/** The items of `ends` that are still leased and not extended since. */
const stillLeased = `lateral (
    select i.id, f.lease_deadline from unnest(ends.ids) as i(id) cross join lateral (
      select t.state, t.lease_deadline from redrive.items t
      where t.queue_id = ends.queue_id and t.partition = ends.partition and t.id = i.id offset 0
    ) f
    where f.state = ${stateCodes.leased} and f.lease_deadline <= ends.deadline
  )`

/** A look without locks: one row per lease that ended, or one without an id where none is left. */
export const peekEnded: Statement = {
  name: 'peek-ended',
  text: `select ends.number, ends.deadline, ends.queue_id, ends.partition, q.name, s.id
    from (select * from redrive.lease_ends where deadline <= $1 order by deadline, number limit $2) ends
      join redrive.queues q on q.id = ends.queue_id
      left join ${stillLeased} s on true
    order by ends.deadline, s.id`,
}

export const deleteEnds: Statement = {
  name: 'forget-lease-ends',
  text: 'delete from redrive.lease_ends where number = any ($1::int8[])',
}

const endsLooked = 20
const idsLooked = 500
/**
 * It is asked every second, and most of what it looks up was settled long ago: so it stops after so many ids,
 * not only after so many batches. Twenty batches of a thousand took a tenth of a second.
 */
export const firstEnd: Statement = {
  name: 'first-lease-end',
  text: `with first as materialized (
      select * from redrive.lease_ends order by deadline, number limit ${endsLooked}
    ), summed as materialized (
      select f.*, sum(cardinality(f.ids)) over (order by f.deadline, f.number) - cardinality(f.ids) as ids_before from first f
    ), looked as materialized (
      select * from summed where ids_before < ${idsLooked}
    )
    select coalesce(
      (select min(ends.deadline) from looked ends
        where exists (select from ${stillLeased} s)),
      -- Nobody knows yet; a look too early finds nothing and asks again.
      (select max(deadline) from looked
        having count(*) = ${endsLooked} or count(*) < (select count(*) from summed))) as deadline`,
}
