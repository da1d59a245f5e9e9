/**
 * Merges groups and causes. A merged group keeps its letters and counts; every read adds them to the group
 * that it is shown as. So a merge takes effect for all letters in one transaction, whatever their number.
 *
 * Transactions that create or change groups of a queue wait for each other (`lockGroups`), and so do those
 * that give causes to groups of one bucket in several queues (`lockCauses`).
 */
import { areAlike, candidatesMax } from '../../../core/grouping/match-group.ts'
import { planMerges } from '../../../core/grouping/plan-merges.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { isInt4 } from '../counts/count-conditions.ts'

type AlikeGroup = Readonly<{ id: number; bucket: string; template: string; causeKey: string }>

/** In the order of the queues, so that writers do not wait for each other in a circle. */
const lockQueues: Statement = {
  name: 'lock-groups-of-queues',
  text: `select pg_advisory_xact_lock(hashtext('redrive group merges'), w.queue_id)
    from (select unnest($1::int4[]) as queue_id order by 1) w`,
}
const lockBuckets: Statement = {
  name: 'lock-causes',
  text: `with all_causes as materialized (select pg_advisory_xact_lock_shared(hashtext('redrive all causes')))
    select pg_advisory_xact_lock(hashtext('redrive causes'), w.hash)
    from all_causes, (select distinct hashtext(bucket) as hash from unnest($1::text[]) as b(bucket) order by 1) w`,
}
const lockEveryCause: Statement = {
  name: 'lock-all-causes',
  text: `select pg_advisory_xact_lock(hashtext('redrive all causes'))`,
}

export async function lockGroups(connection: Connection, queueIds: readonly number[]): Promise<void> {
  await connection.query(lockQueues, [encodeInt4s(queueIds)])
}

export async function lockCauses(connection: Connection, buckets: readonly string[]): Promise<void> {
  if (buckets.length > 0) await connection.query(lockBuckets, [encodeTexts(buckets)])
}

/** A person may merge causes of any buckets. */
export async function lockAllCauses(connection: Connection): Promise<void> {
  await connection.query(lockEveryCause)
}

const alike: Statement = {
  name: 'find-alike-groups',
  text: `select g.* from unnest($1::text[]) as w(bucket)
    cross join lateral (
      select f.id, f.bucket, f.template, f.cause_key from redrive.groups f
      where f.bucket = w.bucket and f.bucket <> '' order by f.id limit ${candidatesMax}) g`,
}

/** The groups of all queues that may have the same cause, the oldest first. */
export async function listAlike(connection: Connection, buckets: readonly string[]): Promise<AlikeGroup[]> {
  if (buckets.length === 0) return []
  return (await connection.query(alike, [encodeTexts(buckets)])).map((row) => ({
    id: readNumber(row, 'id'),
    bucket: readText(row, 'bucket'),
    template: readText(row, 'template'),
    causeKey: readText(row, 'cause_key'),
  }))
}

const aliases: Statement = {
  name: 'find-cause-aliases',
  text: 'select a.cause_key, a.merged_into from redrive.cause_aliases a where a.cause_key = any ($1::text[])',
}

/** The keys into which these keys were merged. */
export async function findAliasedKeys(
  connection: Connection,
  causeKeys: readonly string[],
): Promise<Map<string, string>> {
  const rows = await connection.query(aliases, [encodeTexts([...new Set(causeKeys)])])
  return new Map(rows.map((row) => [readText(row, 'cause_key'), readText(row, 'merged_into')]))
}

/** Groups got wider templates: groups of other queues that these describe now have the same cause. */
export async function mergeAlikeCauses(
  connection: Connection,
  buckets: readonly string[],
  widenedIds: readonly number[],
): Promise<void> {
  await lockCauses(connection, buckets)
  const groups = await listAlike(connection, buckets)
  const pairs = groups
    .filter(({ id }) => widenedIds.includes(id))
    .flatMap(({ template, bucket }) => {
      const same = groups.filter((group) => group.bucket === bucket && areAlike(group.template, template))
      return same.map(({ id }) => [id, same[0]?.id ?? id] as const)
    })
  await runMerges(connection, pairs, 'causes')
}

const coverRows: Statement = {
  name: 'cover-groups',
  text: `update redrive.groups set bucket = '' where id = any ($1::int4[])`,
}

/**
 * Each group is described by the template of the second one: it becomes part of it, and takes no other
 * causes.
 */
export async function coverGroups(
  connection: Connection,
  pairs: readonly (readonly [number, number])[],
): Promise<void> {
  if (pairs.length === 0) return
  await mergeGroups(connection, pairs)
  await connection.query(coverRows, [encodeInt4s(pairs.map(([id]) => id))])
}

export function mergeGroups(
  connection: Connection,
  pairs: readonly (readonly [number, number])[],
): Promise<void> {
  return runMerges(connection, pairs, 'groups and causes')
}

const readGroups: Statement = {
  name: 'read-groups-to-merge',
  text: `select g.id, coalesce(g.merged_into, g.id) as shown_as, g.cause_key
    from redrive.groups g where g.id = any ($1::int4[])`,
}
const mergeRows: Statement = {
  name: 'merge-groups',
  text: `update redrive.groups g set merged_into = w.target
    from unnest($1::int4[], $2::int4[]) as w(id, target)
    where g.id = w.id or (g.merged_into = w.id and g.merged_into is not null)`,
}
/** A title that a person chose is kept, unless the other group has one too. */
const keepTitles: Statement = {
  name: 'keep-pinned-titles',
  text: `update redrive.groups g set pinned_title = s.pinned_title
    from unnest($1::int4[], $2::int4[]) as w(id, target) join redrive.groups s on s.id = w.id
    where g.id = w.target and g.pinned_title is null and s.pinned_title is not null`,
}

async function runMerges(
  connection: Connection,
  pairs: readonly (readonly [number, number])[],
  subject: 'causes' | 'groups and causes',
): Promise<void> {
  if (pairs.length === 0) return
  const rows = await connection.query(readGroups, [encodeInt4s([...new Set(pairs.flat())].filter(isInt4))])
  const known = rows.map((row) => ({
    id: readNumber(row, 'id'),
    shownAs: readNumber(row, 'shown_as'),
    causeKey: readText(row, 'cause_key'),
  }))
  const { groups, causes } = planMerges(pairs, known)
  await mergeCauses(connection, causes)
  if (subject === 'causes' || groups.size === 0) return
  const values = [encodeInt4s([...groups.keys()]), encodeInt4s([...groups.values()])]
  await connection.query(mergeRows, values)
  await connection.query(keepTitles, values)
}

const moveGroups: Statement = {
  name: 'move-groups-to-causes',
  text: `update redrive.groups g set cause_key = w.target
    from unnest($1::text[], $2::text[]) as w(cause_key, target) where g.cause_key = w.cause_key`,
}
const moveAliases: Statement = {
  name: 'move-cause-aliases',
  text: `update redrive.cause_aliases a set merged_into = w.target
    from unnest($1::text[], $2::text[]) as w(cause_key, target) where a.merged_into = w.cause_key`,
}
const addAliases: Statement = {
  name: 'add-cause-aliases',
  text: `insert into redrive.cause_aliases (cause_key, merged_into)
    select * from unnest($1::text[], $2::text[]) order by 1
    on conflict (cause_key) do update set merged_into = excluded.merged_into`,
}
/** A key may have been merged before, and been given to a new group since. */
const removeAliases: Statement = {
  name: 'remove-cause-aliases',
  text: 'delete from redrive.cause_aliases where cause_key = any ($1::text[])',
}

/** No target may itself be merged: `planMerges` follows chains to their end. */
export async function mergeCauses(
  connection: Connection,
  causes: ReadonlyMap<string, string>,
): Promise<void> {
  if (causes.size === 0) return
  const values = [encodeTexts([...causes.keys()]), encodeTexts([...causes.values()])]
  await connection.query(moveGroups, values)
  await connection.query(moveAliases, values)
  await connection.query(addAliases, values)
  await connection.query(removeAliases, [encodeTexts([...new Set(causes.values())])])
}
