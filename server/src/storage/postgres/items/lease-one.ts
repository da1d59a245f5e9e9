import { stepBytesMax } from '../../shared/byte-budget.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeTexts } from '../connection/encode-arrays.ts'
import { addToCounts } from '../counts/counts.ts'
import type { LeasePosition } from './lease-cursors.ts'
import { leasedNames, printLeasedColumns } from './leased-row.ts'
import { stateCodes } from './rows.ts'

export type SinglePartitionLease = Readonly<{
  queueId: number
  version: number
  partition: number
  /** Item number i goes to `holders[i]`. */
  holders: readonly string[]
  now: number
  deadline: number
  /** The slot of the counts; null if the caller counts. */
  slot: number | null
  /** Where to start, see `LeaseCursors`. */
  after: LeasePosition
}>

/**
 * The same as the statements in lease.ts, for one partition and faster: locations and holders are two lists
 * side by side, so items need not be numbered, and no value is looked up in a list for each item. It counts
 * the updated rows and not the locked ones: a row that another server leased and returned in the meantime is
 * locked in its newest version, which this statement does not see.
 *
 * `before_it`: the bytes of the payloads before an item. PostgreSQL knows the length of a payload without
 * reading it.
 */
export const leaseOne: Statement = {
  name: 'lease-one',
  text: `with leased as (
      update redrive.items_live t
      set state = ${stateCodes.leased}, attempts = t.attempts + 1, lease_holder = p.holder,
        lease_deadline = $6::int8, updated_at = $7::int8
      from rows from (unnest(array(
          select b.location from (
            select w.location, sum(w.bytes) over (rows unbounded preceding) - w.bytes as before_it from (
              select o.ctid as location, octet_length(o.payload) as bytes from redrive.items_live o
              where o.queue_id = $1::int4 and o.partition = $3::int4 and o.state = ${stateCodes.waiting}
                and o.available_at is null and o.ended_at is null and (-o.priority, o.id) > ($9::int4, $10::text)
              order by -o.priority, o.id
              limit $4::int4 * (select redrive.expect_rows(count(*), 1) from redrive.queues q
                where q.id = $1::int4 and q.version = $2::int4)
              for update skip locked
            ) w
          ) b where b.before_it < ${stepBytesMax}
        )), unnest($5::text[])) with ordinality as p(location, holder, ordinal)
      where t.ctid = p.location
      returning p.ordinal, t.ctid as location, ${printLeasedColumns('t')}
    ), summed as materialized (
      select count(*) as n, array_agg(id) as ids from leased
    ), ended as (
      insert into redrive.lease_ends (queue_id, partition, deadline, ids)
      select $1::int4, $3::int4, $6::int8, ids from summed where n > 0
    ), counted as (${addToCounts(
      ['waiting', 'leased', 'lease_sum_ms'],
      `select $1::int4, $3::int4, $8::int4, -n, n, n * ($6::int8 / 1000) from summed
       where n > 0 and $8::int4 is not null`,
    )})
    select l.ordinal, l.location, ${leasedNames.map((name) => `l.${name}`).join(', ')} from leased l`,
  hasRawRows: true,
}

export function encodeLeaseOne(lease: SinglePartitionLease): unknown[] {
  return [
    lease.queueId,
    lease.version,
    lease.partition,
    lease.holders.length,
    encodeTexts(lease.holders),
    lease.deadline,
    lease.now,
    lease.slot,
    lease.after.rank,
    lease.after.id,
  ]
}
