/**
 * A lease of items of one partition, at one time, as nearly every lease is. What `lease.ts` looks up for each item
 * in lists is then the same for all of them, and the database does with a few steps less per item
 * and per statement.
 */
import { int4s, texts } from './arrays.ts'
import type { Statement } from './connections.ts'
import { addToCounts } from './counts.ts'
import { leasedColumns, leasedNames } from './leased-row.ts'
import { stateCodes } from './rows.ts'

export type OneLease = Readonly<{
  queueId: number
  version: number
  partition: number
  /** Item number i is for `holders[i]`. */
  holders: readonly string[]
  now: number
  deadline: number
  /** Null when the caller counts. */
  slot: number | null
  /** Where to begin, see `Cursors`. */
  after: Readonly<{ rank: number; id: string }>
}>

/**
 * Says the same, and undoes itself for the same reason, as the statements in `lease.ts`. Counted is what was
 * updated, not what was picked: a row that somebody else leased and gave back in between is locked in its newest
 * version, which this statement does not see.
 */
export const leaseOne: Statement = {
  name: 'lease-one',
  text: `with picked as materialized (
      select o.place, row_number() over () as turn from (
        select t.ctid as place from redrive.items_live t
        where t.queue_id = $1::int4 and t.partition = $3::int4 and t.state = ${stateCodes.waiting}
          and t.available_at is null and t.ended_at is null and (-t.priority, t.id) > ($10::int4, $11::text)
          and (select redrive.expect_rows(count(*), 1) from redrive.queues q
            where q.id = $1::int4 and q.version = $2::int4) > 0
        order by -t.priority, t.id limit $4::int4 for update skip locked
      ) o
    ), leased as (
      update redrive.items_live t
      set state = ${stateCodes.leased}, attempts = t.attempts + 1, lease_holder = ($5::text[])[($6::int4[])[p.turn]],
        lease_deadline = $7::int8, updated_at = $8::int8
      from picked p where t.ctid = p.place
      returning p.turn, t.ctid as place, ${leasedColumns('t')}
    ), ended as (
      insert into redrive.lease_ends (queue_id, partition, deadline, ids)
      select $1::int4, $3::int4, $7::int8, array_agg(id) from leased having count(*) > 0
    ), counted as (${addToCounts(
      ['waiting', 'leased', 'lease_sum_ms'],
      `select $1::int4, $3::int4, $9::int4, -count(*), count(*), count(*) * ($7::int8 / 1000) from leased
       having count(*) > 0 and $9::int4 is not null`,
    )})
    select l.turn, l.place, ${leasedNames.map((name) => `l.${name}`).join(', ')} from leased l`,
  isListed: true,
}

export function parametersOfOne(lease: OneLease): unknown[] {
  // Each holder once: to find one in a list of texts the database goes over all those before it.
  const places = new Map<string, number>()
  const whose = lease.holders.map((holder) => {
    const place = places.get(holder) ?? places.size + 1
    places.set(holder, place)
    return place
  })
  return [
    lease.queueId,
    lease.version,
    lease.partition,
    lease.holders.length,
    texts([...places.keys()]),
    int4s(whose),
    lease.deadline,
    lease.now,
    lease.slot,
    lease.after.rank,
    lease.after.id,
  ]
}
