/**
 * The groups of letters. A group is made with its first letter, and what it stands for never changes; so a
 * server may remember which one a fingerprint stands for as long as it likes. Queue ids are never used again:
 * what is remembered of a queue that was deleted is of no queue any more.
 *
 * Only when it was first seen changes, and only to an earlier time: letters come to be known in another order
 * than that of their deaths. So a server also remembers a time that each was first seen by, and writes to a
 * group when it gets an earlier letter. Deaths that come in order write nothing.
 */
import { type Cause, foldCause, toCause } from '../../../core/cause.ts'
import type { Instant } from '../../../core/instant.ts'
import type { Failure, ItemHead, Origin } from '../../../core/item.ts'
import type { Statement } from '../connection/connection.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import type { StoredHead } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'

const rememberedMax = 100_000

export class GroupCache {
  readonly #ids = new Map<string, number>()
  readonly #seenAt = new Map<number, Instant>()

  get(key: string): number | undefined {
    return this.#ids.get(key)
  }

  set(key: string, id: number): void {
    makeRoom(this.#ids)
    this.#ids.set(key, id)
  }

  /** That group is known to have been seen by then. */
  isSeenBy(groupId: number, at: Instant): boolean {
    return (this.#seenAt.get(groupId) ?? Number.POSITIVE_INFINITY) <= at
  }

  noteSeen(groupId: number, at: Instant): void {
    if (this.isSeenBy(groupId, at)) return
    makeRoom(this.#seenAt)
    this.#seenAt.set(groupId, at)
  }
}

function makeRoom<K>(remembered: Map<K, unknown>): void {
  if (remembered.size < rememberedMax) return
  const [oldest] = remembered.keys()
  if (oldest !== undefined) remembered.delete(oldest)
}

const findGroups: Statement = {
  name: 'find-groups',
  text: `select g.queue_id, g.fingerprint, g.id, g.first_seen_at from unnest($1::int4[], $2::text[]) as w(queue_id, fingerprint)
    cross join lateral (
      select f.queue_id, f.fingerprint, f.id, f.first_seen_at from redrive.groups f
      where f.queue_id = w.queue_id and f.fingerprint = w.fingerprint offset 0) g`,
}

/** `has_dead_queue`: as it is now that its partition is locked, not as it was when the transaction began. */
const countGroups: Statement = {
  name: 'count-groups',
  text: `select w.queue_id, (select count(*) from redrive.groups g where g.queue_id = w.queue_id) as n,
      (select q.dead_queue is not null from redrive.queues q where q.id = w.queue_id) as has_dead_queue
    from unnest($1::int4[]) as w(queue_id)`,
}

/** Sorted: who makes several meets others in the same order. */
const makeGroups: Statement = {
  name: 'make-groups',
  text: `insert into redrive.groups (queue_id, fingerprint, origin, reason, slug, error_class, title, first_seen_at)
    select * from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[])
    on conflict (queue_id, fingerprint) do nothing returning queue_id, fingerprint, id, first_seen_at`,
}

/**
 * In the order in which they are asked for. Who waited for one that was made earlier still finds it changed.
 */
export const lockLater: Statement = {
  name: 'lock-later-groups',
  text: `select g.id, w.at from unnest($1::int4[], $2::int8[]) as w(id, at)
    cross join lateral (
      select f.id from redrive.groups f where f.id = w.id and f.first_seen_at > w.at for no key update) g`,
}

/** Only those that are locked. */
export const lowerFirstSeenAt: Statement = {
  name: 'lower-first-seen',
  text: `update redrive.groups t set first_seen_at = w.at from unnest($1::int4[], $2::int8[]) as w(id, at)
      cross join lateral (select f.ctid as place from redrive.groups f where f.id = w.id offset 0) p
    where t.ctid = p.place`,
}

/**
 * Writes to the groups that got a letter from before they are known to have been seen: to none, as a rule.
 */
export async function lowerFirstSeen(transaction: Transaction): Promise<void> {
  const earlier = [...transaction.tally.letters.firstArrivals()]
    .filter(([groupId, at]) => !transaction.isSeenBy(groupId, at))
    // By id: who lowers several meets others in the same order.
    .sort(([a], [b]) => a - b)
  if (earlier.length === 0) return
  const { connection } = transaction
  const later = await connection.query(lockLater, [
    int4s(earlier.map(([groupId]) => groupId)),
    int8s(earlier.map(([, at]) => at)),
  ])
  if (later.length > 0) {
    await connection.query(lowerFirstSeenAt, [
      int4s(later.map((row) => row.id as number)),
      int8s(later.map((row) => row.at as number)),
    ])
  }
  for (const [groupId, at] of earlier) transaction.putGroupSeen(groupId, at)
}

type Wanted = Readonly<{ queueId: number; cause: Cause; seenAt: number }>
type Letter = Readonly<{ queueId: number; failure: Failure | null; origin: Origin | null; seenAt: number }>

/** What is no letter has none. */
export async function groupIdsOf(
  transaction: Transaction,
  letters: readonly Letter[],
): Promise<(number | null)[]> {
  const wanted = new Map<string, Wanted>()
  const keys = letters.map(({ queueId, failure, origin, seenAt }) => {
    if (origin === null) return null
    const cause = toCause(failure, origin)
    const key = keyOf(queueId, cause.fingerprint)
    if (transaction.groupOf(key) === undefined && !wanted.has(key))
      wanted.set(key, { queueId, cause, seenAt })
    return key
  })
  if (wanted.size > 0) await learn(transaction, wanted)
  return keys.map((key) => (key === null ? null : (transaction.groupOf(key) as number)))
}

/**
 * The items with their groups. Those that are no letters have none. `isNew`: they died now, and did not just
 * fail anew.
 */
export async function withGroups(
  transaction: Transaction,
  stored: readonly StoredHead[],
  isNew: boolean,
): Promise<StoredHead[]> {
  const letters = stored.map(({ queueId, item: { failure, origin, diedAt, createdAt, updatedAt } }) => ({
    queueId,
    failure,
    origin,
    seenAt: isNew ? (diedAt ?? createdAt) : updatedAt,
  }))
  const ids = await groupIdsOf(transaction, letters)
  return stored.map((each, index) => {
    const groupId = ids[index] ?? null
    return groupId === null ? each : { ...each, item: { ...each.item, groupId } }
  })
}

/** The group that a letter has after a change; only a new failure makes it another one. */
export function needsGroup(before: ItemHead, after: ItemHead): boolean {
  return after.origin !== null && (before.groupId === null || before.failure !== after.failure)
}

/** What is there is used, however many there are: only what is new is folded, as far as its queue has to. */
async function learn(transaction: Transaction, wanted: ReadonlyMap<string, Wanted>): Promise<void> {
  let missing = await find(transaction, wanted)
  if (missing.size === 0) return
  const sizes = await sizesOf(transaction, missing)
  const folded: [key: string, otherKey: string][] = []
  while (missing.size > 0) {
    const made = new Map<string, Wanted>()
    const others = new Map<string, Wanted>()
    for (const [key, each] of missing) {
      const size = sizes.get(each.queueId) ?? 0
      const cause = foldCause(each.cause, size)
      if (cause === undefined) {
        sizes.set(each.queueId, size + 1)
        made.set(key, each)
        continue
      }
      const otherKey = keyOf(each.queueId, cause.fingerprint)
      if (transaction.groupOf(otherKey) === undefined) others.set(otherKey, { ...each, cause })
      folded.push([key, otherKey])
    }
    await make(transaction, made)
    missing = others.size === 0 ? others : await find(transaction, others)
  }
  // What was folded last stands for what was folded before.
  for (const [key, otherKey] of folded.toReversed()) {
    transaction.putGroup(key, transaction.groupOf(otherKey) as number)
  }
}

async function sizesOf(
  transaction: Transaction,
  missing: ReadonlyMap<string, Wanted>,
): Promise<Map<number, number>> {
  const queueIds = [...new Set([...missing.values()].map(({ queueId }) => queueId))]
  const rows = await transaction.connection.query(countGroups, [int4s(queueIds)])
  // A queue that has groups gets no dead queue any more, so it is enough to look where the first are made.
  if (rows.some((row) => row.n === 0 && row.has_dead_queue === true)) throw new StaleReadError('a dead queue')
  return new Map(rows.map((row) => [row.queue_id as number, row.n as number]))
}

/** Learns those that are there; says which are not. */
async function find(
  transaction: Transaction,
  wanted: ReadonlyMap<string, Wanted>,
): Promise<Map<string, Wanted>> {
  const list = [...wanted.values()]
  const rows = await transaction.connection.query(findGroups, [
    int4s(list.map(({ queueId }) => queueId)),
    texts(list.map(({ cause }) => cause.fingerprint)),
  ])
  const missing = new Map(wanted)
  for (const row of rows) {
    const key = keyOf(row.queue_id as number, row.fingerprint as string)
    transaction.putGroup(key, row.id as number)
    transaction.putGroupSeen(row.id as number, row.first_seen_at as number)
    missing.delete(key)
  }
  return missing
}

async function make(transaction: Transaction, wanted: ReadonlyMap<string, Wanted>): Promise<void> {
  if (wanted.size === 0) return
  const list = [...wanted.values()].sort(
    (a, b) => a.queueId - b.queueId || (a.cause.fingerprint < b.cause.fingerprint ? -1 : 1),
  )
  const rows = await transaction.connection.query(makeGroups, [
    int4s(list.map(({ queueId }) => queueId)),
    texts(list.map(({ cause }) => cause.fingerprint)),
    texts(list.map(({ cause }) => cause.origin)),
    texts(list.map(({ cause }) => cause.reason)),
    texts(list.map(({ cause }) => cause.slug)),
    texts(list.map(({ cause }) => cause.errorClass)),
    texts(list.map(({ cause }) => cause.title)),
    int8s(list.map(({ seenAt }) => seenAt)),
  ])
  const missing = new Map(wanted)
  for (const row of rows) {
    const key = keyOf(row.queue_id as number, row.fingerprint as string)
    transaction.putGroup(key, row.id as number)
    transaction.putGroupSeen(row.id as number, row.first_seen_at as number)
    missing.delete(key)
  }
  // Somebody made them meanwhile.
  if (missing.size > 0) await find(transaction, missing)
}

function keyOf(queueId: number, fingerprint: string): string {
  return `${queueId}/${fingerprint}`
}
