/**
 * The groups of letters. A group is created with its first letter, and its cause never changes, so a server
 * may cache the id of a group forever. Ids of queues are never reused, so cached groups of a deleted queue
 * belong to no other queue.
 *
 * Only the time at which a group was first seen changes, and only to an earlier time, because letters may
 * arrive in another order than they died. A server also caches a time at which each group was already seen,
 * and writes to the group only for an earlier letter. Letters that arrive in order write nothing.
 */
import { type Cause, foldCause, toCause } from '../../../core/cause.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Failure, Origin } from '../../../core/item.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import type { StoredHead } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'

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
  text: `insert into redrive.groups (queue_id, fingerprint, origin, reason, slug, error_class, title, first_seen_at)
    select * from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[])
    on conflict (queue_id, fingerprint) do nothing returning queue_id, fingerprint, id, first_seen_at`,
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
  const earlier = [...transaction.countChanges.letters.firstArrivals()]
    .filter(([groupId, at]) => !transaction.isSeenBy(groupId, at))
    // Sort by id, so that writers lock groups in one order.
    .sort(([a], [b]) => a - b)
  if (earlier.length === 0) return
  const { connection } = transaction
  const locked = await connection.query(lockSeenLater, [
    int4s(earlier.map(([groupId]) => groupId)),
    int8s(earlier.map(([, at]) => at)),
  ])
  if (locked.length > 0) {
    await connection.query(updateFirstSeen, [
      int4s(locked.map((row) => readNumber(row, 'id'))),
      int8s(locked.map((row) => readNumber(row, 'at'))),
    ])
  }
  for (const [groupId, at] of earlier) transaction.putFirstSeen(groupId, at)
}

type WantedGroup = Readonly<{ queueId: number; cause: Cause; seenAt: number }>
type GroupedItem = Readonly<{
  queueId: number
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
  const keys = items.map(({ queueId, failure, origin, seenAt }) => {
    if (origin === null) return null
    const cause = toCause(failure, origin)
    const key = groupKey(queueId, cause.fingerprint)
    if (transaction.getGroupId(key) === undefined && !wanted.has(key))
      wanted.set(key, { queueId, cause, seenAt })
    return key
  })
  if (wanted.size > 0) await loadGroups(transaction, wanted)
  return keys.map((key) => (key === null ? null : getLoaded(transaction, key)))
}

/** The items with their groups. `isNew`: they died now; otherwise they are letters that failed again. */
export async function assignGroups(
  transaction: Transaction,
  stored: readonly StoredHead[],
  isNew: boolean,
): Promise<StoredHead[]> {
  const items = stored.map(({ queueId, item: { failure, origin, diedAt, createdAt, updatedAt } }) => ({
    queueId,
    failure,
    origin,
    seenAt: isNew ? (diedAt ?? createdAt) : updatedAt,
  }))
  const ids = await findOrCreateGroups(transaction, items)
  return stored.map((each, index) => {
    const groupId = ids[index] ?? null
    return groupId === null ? each : { ...each, item: { ...each.item, groupId } }
  })
}

/** Puts the ids of all wanted groups into the transaction. Creates the missing groups. */
async function loadGroups(transaction: Transaction, wanted: ReadonlyMap<string, WantedGroup>): Promise<void> {
  let missing = await findExisting(transaction, wanted)
  if (missing.size === 0) return
  const sizes = await countByQueue(transaction, missing)
  const folded: FoldedKey[] = []
  while (missing.size > 0) {
    const split = foldMissing(transaction, missing, sizes)
    folded.push(...split.folded)
    await createGroups(transaction, split.created)
    missing = split.coarser.size === 0 ? split.coarser : await findExisting(transaction, split.coarser)
  }
  // In reverse order, because the group of a folded key may itself have been folded later.
  for (const { key, coarserKey } of folded.toReversed()) {
    transaction.putGroupId(key, getLoaded(transaction, coarserKey))
  }
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
  const queueIds = [...new Set([...missing.values()].map(({ queueId }) => queueId))]
  const rows = await transaction.connection.query(countGroups, [int4s(queueIds)])
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
    int4s(list.map(({ queueId }) => queueId)),
    texts(list.map(({ cause }) => cause.fingerprint)),
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
  const rows = await transaction.connection.query(insertGroups, [
    int4s(list.map(({ queueId }) => queueId)),
    texts(list.map(({ cause }) => cause.fingerprint)),
    texts(list.map(({ cause }) => cause.origin)),
    texts(list.map(({ cause }) => cause.reason)),
    texts(list.map(({ cause }) => cause.slug)),
    texts(list.map(({ cause }) => cause.errorClass)),
    texts(list.map(({ cause }) => cause.title)),
    int8s(list.map(({ seenAt }) => seenAt)),
  ])
  const missing = putGroups(transaction, rows, wanted)
  // Another transaction created these groups in the meantime.
  if (missing.size > 0) await findExisting(transaction, missing)
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
