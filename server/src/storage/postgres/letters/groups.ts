/**
 * The groups of letters. A group is created with its first letter, and its fingerprint never changes, so a
 * server may cache the id of a group forever. Ids of queues are never reused, so cached groups of a deleted
 * queue belong to no other queue.
 *
 * A cause without a group may belong to a group that exists (`core/grouping/match-group.ts`). Then the
 * template of that group becomes wider, and groups that it covers are shown as part of it (`merged_into`).
 * Their letters stay where they are. Transactions that change the groups of a queue in this way wait for each
 * other.
 *
 * The time at which a group was first seen changes too, and only to an earlier time, because letters may
 * arrive in another order than they died. A server also caches a time at which each group was already seen,
 * and writes to the group only for an earlier letter. Letters that arrive in order write nothing.
 */
import { type Cause, foldCause, toCause } from '../../../core/dead-letters/cause.ts'
import type { IndexedGroup } from '../../../core/grouping/group-index.ts'
import { candidatesMax, matchGroup } from '../../../core/grouping/match-group.ts'
import { type GroupsPlan, planGroups } from '../../../core/grouping/plan-groups.ts'
import { type CompiledRules, compileRules, ruleBounds } from '../../../core/grouping/rules.ts'
import type { Failure, Origin } from '../../../core/items/item.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { readBytesOrNull, readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import {
  coverGroups,
  findAliasedKeys,
  listAlike,
  lockCauses,
  lockGroups,
  mergeAlikeCauses,
} from '../groups/merge-groups.ts'
import type { StoredHead } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'
import { ownPayload } from '../webhooks/jobs.ts'

const cachedMax = 100_000

export class GroupCache {
  /** By queue and fingerprint (`groupKey`). */
  readonly #ids = new Map<string, number>()
  /** The stored `first_seen_at` of each group, or a later time. */
  readonly #firstSeenAt = new Map<number, Instant>()

  getId(key: string): number | undefined {
    return this.#ids.get(key)
  }

  putId(key: string, groupId: number): void {
    removeOldest(this.#ids)
    this.#ids.set(key, groupId)
  }

  /** Whether the stored `first_seen_at` of the group is known to be `at` or earlier. */
  isSeenBy(groupId: number, at: Instant): boolean {
    return (this.#firstSeenAt.get(groupId) ?? Number.POSITIVE_INFINITY) <= at
  }

  putFirstSeen(groupId: number, at: Instant): void {
    if (this.isSeenBy(groupId, at)) return
    removeOldest(this.#firstSeenAt)
    this.#firstSeenAt.set(groupId, at)
  }
}

/** Removes the oldest entry of a full cache. */
function removeOldest<K>(cached: Map<K, unknown>): void {
  if (cached.size < cachedMax) return
  const [oldest] = cached.keys()
  if (oldest !== undefined) cached.delete(oldest)
}

const findGroups: Statement = {
  name: 'find-groups',
  text: `select g.queue_id, g.fingerprint, g.id, g.first_seen_at from unnest($1::int4[], $2::text[]) as w(queue_id, fingerprint)
    cross join lateral (
      select f.queue_id, f.fingerprint, f.id, f.first_seen_at from redrive.groups f
      where f.queue_id = w.queue_id and f.fingerprint = w.fingerprint offset 0) g`,
}

/**
 * `has_dead_queue`: read again, because the partition of the queue is locked now and was not when the
 * transaction read the queue.
 */
const countGroups: Statement = {
  name: 'count-groups',
  text: `select w.queue_id, (select count(*) from redrive.groups g where g.queue_id = w.queue_id) as n,
      (select q.dead_queue is not null from redrive.queues q where q.id = w.queue_id) as has_dead_queue
    from unnest($1::int4[]) as w(queue_id)`,
}

/** The rows must be sorted, so that writers that insert the same groups do so in one order. */
const insertGroups: Statement = {
  name: 'insert-groups',
  text: `with created as (
    insert into redrive.groups (queue_id, fingerprint, cause_key, bucket, origin, reason, slug, error_class, title,
      template, first_seen_at, merged_into)
    select * from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
      $9::text[], $10::text[], $11::int8[], $12::int4[])
    on conflict (queue_id, fingerprint) do nothing returning queue_id, fingerprint, id, first_seen_at, merged_into
  ), noticed as (
    insert into redrive.group_notices (group_id, queue_id, kind, at)
    select c.id, c.queue_id, 'new', c.first_seen_at from created c where c.merged_into is null
  )
  select c.queue_id, c.fingerprint, c.id, c.first_seen_at from created c`,
}

/** The groups of a queue that a cause may belong to, the oldest first. */
const findCandidates: Statement = {
  name: 'find-group-candidates',
  text: `select g.* from unnest($1::int4[], $2::text[], $3::text[]) as w(queue_id, origin, bucket)
    cross join lateral (
      select f.queue_id, f.id, f.fingerprint, f.origin, f.bucket, f.template from redrive.groups f
      where f.bucket = w.bucket and f.bucket <> '' and f.queue_id = w.queue_id and f.origin = w.origin
      order by f.id limit ${candidatesMax}) g`,
}

const widenGroups: Statement = {
  name: 'widen-groups',
  text: `update redrive.groups g set template = w.template, title = w.title
    from unnest($1::int4[], $2::text[], $3::text[]) as w(id, template, title) where g.id = w.id`,
}

/**
 * Locks the groups that were first seen later than the given times, in the order of the parameters. A writer
 * that waited for a lock compares with the time that the other writer stored.
 */
export const lockSeenLater: Statement = {
  name: 'lock-groups-seen-later',
  text: `select g.id, w.at from unnest($1::int4[], $2::int8[]) as w(id, at)
    cross join lateral (
      select f.id from redrive.groups f where f.id = w.id and f.first_seen_at > w.at for no key update) g`,
}

/** For groups that `lockSeenLater` returned. */
export const updateFirstSeen: Statement = {
  name: 'update-first-seen',
  text: `update redrive.groups t set first_seen_at = w.at from unnest($1::int4[], $2::int8[]) as w(id, at)
      cross join lateral (select f.ctid as location from redrive.groups f where f.id = w.id offset 0) p
    where t.ctid = p.location`,
}

/**
 * Writes to the groups that got a letter from before the time at which they are known to have been seen.
 * Usually there are none.
 */
export async function lowerFirstSeen(transaction: Transaction): Promise<void> {
  const earlier = [...transaction.countChanges.letters.listFirstArrivals()]
    .filter(([groupId, at]) => !transaction.isSeenBy(groupId, at))
    // Sort by id, so that writers lock groups in one order.
    .sort(([a], [b]) => a - b)
  if (earlier.length === 0) return
  const { connection } = transaction
  const locked = await connection.query(lockSeenLater, [
    encodeInt4s(earlier.map(([groupId]) => groupId)),
    encodeInt8s(earlier.map(([, at]) => at)),
  ])
  if (locked.length > 0) {
    await connection.query(updateFirstSeen, [
      encodeInt4s(locked.map((row) => readNumber(row, 'id'))),
      encodeInt8s(locked.map((row) => readNumber(row, 'at'))),
    ])
  }
  for (const [groupId, at] of earlier) transaction.putFirstSeen(groupId, at)
}

export type RowKey = Readonly<{ queueId: number; partition: number; id: string }>

const rulePayloads: Statement = {
  name: 'payloads-for-rules',
  text: `select w.id, f.payload from unnest($1::int4[], $2::int4[], $3::text[]) as w(queue_id, partition, id)
    cross join lateral (
      select ${ownPayload} as payload from redrive.items t
      where t.queue_id = w.queue_id and t.partition = w.partition and t.id = w.id
        and octet_length(t.payload) <= ${ruleBounds.payloadMax} offset 0) f`,
}

async function readRulePayloads(
  connection: Connection,
  rows: readonly RowKey[],
): Promise<Map<string, Uint8Array>> {
  if (rows.length === 0) return new Map()
  const found = await connection.query(rulePayloads, [
    encodeInt4s(rows.map(({ queueId }) => queueId)),
    encodeInt4s(rows.map(({ partition }) => partition)),
    encodeTexts(rows.map(({ id }) => id)),
  ])
  return new Map(
    found.map((row) => [readText(row, 'id'), readBytesOrNull(row, 'payload') ?? new Uint8Array()]),
  )
}

type WantedGroup = Readonly<{ queueId: number; cause: Cause; seenAt: number }>
type GroupedItem = Readonly<{
  queueId: number
  rules: CompiledRules | undefined
  /** The payload, if a rule of the queue needs it. */
  payload: Uint8Array | undefined
  failure: Failure | null
  origin: Origin | null
  seenAt: number
}>

/** The ids of the items' groups. Items without an origin are not letters and have no group. */
export async function findOrCreateGroups(
  transaction: Transaction,
  items: readonly GroupedItem[],
): Promise<(number | null)[]> {
  const wanted = new Map<string, WantedGroup>()
  const keys = items.map(({ queueId, rules, payload, failure, origin, seenAt }) => {
    if (origin === null) return null
    const cause = toCause(failure, origin, rules, payload)
    const key = groupKey(queueId, cause.fingerprint)
    if (transaction.getGroupId(key) === undefined && !wanted.has(key))
      wanted.set(key, { queueId, cause, seenAt })
    return key
  })
  if (wanted.size > 0) await loadGroups(transaction, wanted)
  return keys.map((key) => (key === null ? null : getLoaded(transaction, key)))
}

/**
 * The items with their groups. `isNew`: they died now; otherwise they are letters that failed again. `rows`:
 * where each of them is stored until now.
 */
export async function assignGroups(
  transaction: Transaction,
  stored: readonly StoredHead[],
  isNew: boolean,
  rows: readonly RowKey[],
): Promise<StoredHead[]> {
  const rules = stored.map(({ queue }) => compileRules(queue.groupingRules))
  const wanted = rows.filter((_, index) => rules[index]?.readsPayload === true)
  const payloads = await readRulePayloads(transaction.connection, wanted)
  const items = stored.map(
    ({ queueId, item: { failure, origin, deadLetteredAt, createdAt, updatedAt } }, index) => ({
      queueId,
      rules: rules[index],
      payload: payloads.get(rows[index]?.id ?? ''),
      failure,
      origin,
      seenAt: isNew ? (deadLetteredAt ?? createdAt) : updatedAt,
    }),
  )
  const ids = await findOrCreateGroups(transaction, items)
  return stored.map((each, index) => {
    const groupId = ids[index] ?? null
    return groupId === null ? each : { ...each, item: { ...each.item, groupId } }
  })
}

/** Puts the ids of all wanted groups into the transaction. Creates the missing groups. */
async function loadGroups(transaction: Transaction, wanted: ReadonlyMap<string, WantedGroup>): Promise<void> {
  const unknown = await findExisting(transaction, wanted)
  if (unknown.size === 0) return
  const joining = await joinGroups(transaction, unknown)
  let missing = joining.missing
  const folded = [...joining.shared]
  if (missing.size > 0) {
    const sizes = await countByQueue(transaction, missing)
    while (missing.size > 0) {
      const split = foldMissing(transaction, missing, sizes)
      folded.push(...split.folded)
      await createGroups(transaction, split.created)
      missing = split.coarser.size === 0 ? split.coarser : await findExisting(transaction, split.coarser)
    }
  }
  // In reverse order, because the group of a folded key may itself have been folded later.
  for (const { key, coarserKey } of folded.toReversed()) {
    transaction.putJoinedGroupId(key, getLoaded(transaction, coarserKey))
  }
}

/** `shared`: causes that get the group of another missing cause. */
type Joining = Readonly<{ missing: Map<string, WantedGroup>; shared: readonly FoldedKey[] }>

/** Lets causes join stored groups, and returns those that need a group of their own. */
async function joinGroups(transaction: Transaction, unknown: Map<string, WantedGroup>): Promise<Joining> {
  const comparable = [...unknown].filter(([, { cause }]) => cause.bucket !== '')
  if (comparable.length === 0) return { missing: unknown, shared: [] }
  let plans = await planJoins(transaction, comparable)
  const isChange = plans.some(({ created, widened }) => created.length > 0 || widened.size > 0)
  if (isChange) {
    await lockGroups(transaction.connection, listQueueIds(unknown.values()))
    // Read again: another transaction may have changed the groups before this one got the lock.
    plans = await planJoins(transaction, comparable)
    await writeJoins(transaction, plans, comparable)
  }
  const missing = new Map(unknown)
  const shared: FoldedKey[] = []
  for (const plan of plans) {
    for (const [key, groupId] of plan.joined) {
      transaction.putJoinedGroupId(key, groupId)
      missing.delete(key)
    }
    for (const [key, coarserKey] of plan.shared) {
      shared.push({ key, coarserKey })
      missing.delete(key)
    }
    for (const { key, cause } of plan.created) {
      missing.set(key, { ...(unknown.get(key) as WantedGroup), cause })
    }
  }
  return { missing, shared }
}

/** One plan for each queue. */
async function planJoins(
  { connection }: Transaction,
  wanted: readonly (readonly [string, WantedGroup])[],
): Promise<GroupsPlan[]> {
  const compared = listCompared(wanted)
  const rows = await connection.query(findCandidates, [
    encodeInt4s(compared.map(({ queueId }) => queueId)),
    encodeTexts(compared.map(({ cause }) => cause.origin)),
    encodeTexts(compared.map(({ cause }) => cause.bucket)),
  ])
  const candidates = new Map<number, Map<number, IndexedGroup>>()
  for (const row of rows) {
    const queueId = readNumber(row, 'queue_id')
    const ofQueue = candidates.get(queueId) ?? new Map<number, IndexedGroup>()
    const group = toIndexedGroup(row)
    candidates.set(queueId, ofQueue.set(group.id, group))
  }
  return listQueueIds(wanted.map(([, each]) => each)).map((queueId) => {
    const ofQueue = wanted.filter(([, each]) => each.queueId === queueId)
    const groups = [...(candidates.get(queueId)?.values() ?? [])].sort((a, b) => a.id - b.id)
    return planGroups(
      ofQueue.map(([key, { cause }]) => ({ key, cause })),
      groups,
    )
  })
}

/** One cause for each queue, origin and bucket: many causes of a batch are compared with the same groups. */
function listCompared(wanted: readonly (readonly [string, WantedGroup])[]): WantedGroup[] {
  const byBucket = new Map<string, WantedGroup>()
  for (const [, each] of wanted) {
    byBucket.set(JSON.stringify([each.queueId, each.cause.origin, each.cause.bucket]), each)
  }
  return [...byBucket.values()]
}

function toIndexedGroup(row: Row): IndexedGroup {
  return {
    id: readNumber(row, 'id'),
    fingerprint: readText(row, 'fingerprint'),
    origin: readText(row, 'origin'),
    bucket: readText(row, 'bucket'),
    template: readText(row, 'template'),
  }
}

async function writeJoins(
  { connection }: Transaction,
  plans: readonly GroupsPlan[],
  wanted: readonly (readonly [string, WantedGroup])[],
): Promise<void> {
  const widened = plans.flatMap((plan) => [...plan.widened])
  if (widened.length > 0) {
    await connection.query(widenGroups, [
      encodeInt4s(widened.map(([id]) => id)),
      encodeTexts(widened.map(([, { template }]) => template)),
      encodeTexts(widened.map(([, { title }]) => title)),
    ])
  }
  if (widened.length > 0) {
    const buckets = uniqueBuckets(wanted.map(([, each]) => each))
    await mergeAlikeCauses(
      connection,
      buckets,
      widened.map(([id]) => id),
    )
  }
  await coverGroups(
    connection,
    plans.flatMap((plan) => [...plan.merged]),
  )
}

function uniqueBuckets(wanted: readonly WantedGroup[]): string[] {
  return [...new Set(wanted.map(({ cause }) => cause.bucket))].filter((bucket) => bucket !== '').sort()
}

function listQueueIds(wanted: Iterable<WantedGroup>): number[] {
  return [...new Set([...wanted].map(({ queueId }) => queueId))].sort((a, b) => a - b)
}

/** The letters of `key` are in the group of `coarserKey`. */
type FoldedKey = Readonly<{ key: string; coarserKey: string }>

/**
 * Splits missing groups into groups to create, and coarser groups to find instead because the queue has too
 * many groups already (`foldCause`). Adds the groups to create to `sizes`, the number of groups of each
 * queue.
 */
function foldMissing(
  transaction: Transaction,
  missing: ReadonlyMap<string, WantedGroup>,
  sizes: Map<number, number>,
): Readonly<{
  created: Map<string, WantedGroup>
  coarser: Map<string, WantedGroup>
  folded: readonly FoldedKey[]
}> {
  const created = new Map<string, WantedGroup>()
  const coarser = new Map<string, WantedGroup>()
  const folded: FoldedKey[] = []
  for (const [key, wanted] of missing) {
    const size = sizes.get(wanted.queueId) ?? 0
    const cause = foldCause(wanted.cause, size)
    if (cause === undefined) {
      sizes.set(wanted.queueId, size + 1)
      created.set(key, wanted)
      continue
    }
    const coarserKey = groupKey(wanted.queueId, cause.fingerprint)
    if (transaction.getGroupId(coarserKey) === undefined) coarser.set(coarserKey, { ...wanted, cause })
    folded.push({ key, coarserKey })
  }
  return { created, coarser, folded }
}

async function countByQueue(
  transaction: Transaction,
  missing: ReadonlyMap<string, WantedGroup>,
): Promise<Map<number, number>> {
  const queueIds = listQueueIds(missing.values())
  const rows = await transaction.connection.query(countGroups, [encodeInt4s(queueIds)])
  const sizes = rows.map((row) => ({
    queueId: readNumber(row, 'queue_id'),
    size: readNumber(row, 'n'),
    hasDeadQueue: row.has_dead_queue === true,
  }))
  // A queue with groups cannot get a dead queue, so only a queue without groups must be checked.
  if (sizes.some(({ size, hasDeadQueue }) => size === 0 && hasDeadQueue)) {
    throw new StaleReadError('a dead queue')
  }
  return new Map(sizes.map(({ queueId, size }) => [queueId, size]))
}

/** Puts the ids of the existing groups into the transaction, and returns the groups that do not exist. */
async function findExisting(
  transaction: Transaction,
  wanted: ReadonlyMap<string, WantedGroup>,
): Promise<Map<string, WantedGroup>> {
  const list = [...wanted.values()]
  const rows = await transaction.connection.query(findGroups, [
    encodeInt4s(list.map(({ queueId }) => queueId)),
    encodeTexts(list.map(({ cause }) => cause.fingerprint)),
  ])
  return putGroups(transaction, rows, wanted)
}

async function createGroups(
  transaction: Transaction,
  wanted: ReadonlyMap<string, WantedGroup>,
): Promise<void> {
  if (wanted.size === 0) return
  const list = [...wanted.values()].sort(
    (a, b) => a.queueId - b.queueId || (a.cause.fingerprint < b.cause.fingerprint ? -1 : 1),
  )
  const parents = await findParents(transaction, list)
  const causeKeys = await findCauseKeys(transaction, list)
  const rows = await transaction.connection.query(insertGroups, [
    encodeInt4s(list.map(({ queueId }) => queueId)),
    encodeTexts(list.map(({ cause }) => cause.fingerprint)),
    encodeTexts(causeKeys),
    encodeTexts(list.map(({ cause }) => cause.bucket)),
    encodeTexts(list.map(({ cause }) => cause.origin)),
    encodeTexts(list.map(({ cause }) => cause.errorCode)),
    encodeTexts(list.map(({ cause }) => cause.slug)),
    encodeTexts(list.map(({ cause }) => cause.errorClass)),
    encodeTexts(list.map(({ cause }) => cause.title)),
    encodeTexts(list.map(({ cause }) => cause.template)),
    encodeInt8s(list.map(({ seenAt }) => seenAt)),
    encodeInt4s(list.map(({ queueId, cause }) => parents.get(groupKey(queueId, cause.parent)) ?? null)),
  ])
  const missing = putGroups(transaction, rows, wanted)
  // Another transaction created these groups in the meantime.
  if (missing.size > 0) await findExisting(transaction, missing)
}

const findShownAs: Statement = {
  name: 'find-groups-shown-as',
  text: `select g.queue_id, g.fingerprint, coalesce(g.merged_into, g.id) as shown_as
    from unnest($1::int4[], $2::text[]) as w(queue_id, fingerprint)
      cross join lateral (
        select f.queue_id, f.fingerprint, f.id, f.merged_into from redrive.groups f
        where f.queue_id = w.queue_id and f.fingerprint = w.fingerprint offset 0) g`,
}

/**
 * The groups that show the wanted groups from their creation, which are created first. The lock keeps another
 * server from merging them before these groups are inserted.
 */
async function findParents(
  transaction: Transaction,
  list: readonly WantedGroup[],
): Promise<Map<string, number>> {
  const named = list.filter(({ cause }) => cause.parent !== '')
  if (named.length === 0) return new Map()
  const { connection } = transaction
  await lockGroups(connection, listQueueIds(named))
  const parents = new Map(
    named.map(({ queueId, cause, seenAt }) => [
      groupKey(queueId, cause.parent),
      { queueId, cause: { ...cause, fingerprint: cause.parent, parent: '' }, seenAt },
    ]),
  )
  await createGroups(transaction, parents)
  const wanted = [...parents.values()]
  const rows = await connection.query(findShownAs, [
    encodeInt4s(wanted.map(({ queueId }) => queueId)),
    encodeTexts(wanted.map(({ cause }) => cause.fingerprint)),
  ])
  return new Map(
    rows.map((row) => [
      groupKey(readNumber(row, 'queue_id'), readText(row, 'fingerprint')),
      readNumber(row, 'shown_as'),
    ]),
  )
}

/** The keys of groups in other queues that have the same causes, or new ones. */
async function findCauseKeys({ connection }: Transaction, list: readonly WantedGroup[]): Promise<string[]> {
  const buckets = uniqueBuckets(list)
  await lockCauses(connection, buckets)
  const groups = await listAlike(connection, buckets)
  const aliased = await findAliasedKeys(
    connection,
    list.map(({ cause }) => cause.causeKey),
  )
  return list.map(({ cause: { bucket, template, causeKey } }, index) => {
    const alike = groups.filter((group) => group.bucket === bucket)
    const match = matchGroup(template, alike)
    const found = match.kind === 'create' ? undefined : alike.find(({ id }) => id === match.id)
    const key = found?.causeKey ?? aliased.get(causeKey) ?? causeKey
    // The next groups of this list may have the same cause. Stored groups have lower ids.
    if (bucket !== '') groups.push({ id: 2 ** 40 + index, bucket, template, causeKey: key })
    return key
  })
}

/** Puts groups into the transaction, and returns the wanted groups that are not among them. */
function putGroups(
  transaction: Transaction,
  rows: readonly Row[],
  wanted: ReadonlyMap<string, WantedGroup>,
): Map<string, WantedGroup> {
  const missing = new Map(wanted)
  for (const row of rows) {
    const groupId = readNumber(row, 'id')
    const key = groupKey(readNumber(row, 'queue_id'), readText(row, 'fingerprint'))
    transaction.putGroupId(key, groupId)
    transaction.putFirstSeen(groupId, readNumber(row, 'first_seen_at'))
    missing.delete(key)
  }
  return missing
}

function getLoaded(transaction: Transaction, key: string): number {
  const groupId = transaction.getGroupId(key)
  if (groupId === undefined) throw new Error(`group ${key} was not loaded`)
  return groupId
}

function groupKey(queueId: number, fingerprint: string): string {
  return `${queueId}/${fingerprint}`
}
