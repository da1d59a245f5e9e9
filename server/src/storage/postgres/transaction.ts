/**
 * A transaction in progress: the queues that it read, the partitions that it locked, and the changes that it
 * writes before its commit.
 *
 * Locks are taken in this order, so that writers do not wait for each other in a circle:
 *
 * 1. the lock on queue definitions
 * 2. partitions: those of queues with a dead queue first, then by number
 * 3. letter classes of queues
 * 4. items, by queue, partition and id
 * 5. the letters that the items are redrives of, by UUID
 * 6. partitions of dead queues
 * 7. groups
 * 8. letters of campaigns
 * 9. counts, counts of letters, counts of campaigns
 *
 * `advance` and `lease` never wait for items. A deadlock is still possible if one list of commands locks
 * items in several steps: the database then rolls it back, and it is executed again.
 */

import { createKsuids } from '../../core/ids/ksuid.ts'
import type { Instant } from '../../core/time/instant.ts'
import { createQueueNotFoundError } from '../shared/items/queue-checks.ts'
import { readNumber, readText } from '../shared/rows/row-values.ts'
import { CampaignChanges } from './campaigns/campaign-letters.ts'
import { awaitAll } from './connection/await-all.ts'
import type { Connection, Row } from './connection/connection.ts'
import { encodeInt4s, encodeTexts } from './connection/encode-arrays.ts'
import { StaleReadError } from './connection/errors.ts'
import { CountChanges, writeCountChanges } from './counts/counts.ts'
import { writeLetterCountChanges } from './counts/letter-counts.ts'
import { lowerFirstSeen } from './letters/groups.ts'
import type { PrefetchedLetters } from './letters/letter-snapshots.ts'
import { checkPartition, type QueueCache, type QueueRow, toQueueRow } from './queues/queue-cache.ts'
import type { StoreContext } from './store-context.ts'

type LockedPartition = { queueId: number; partition: number; lastId: string; isUsed: boolean }
export type PartitionRef = Readonly<{ queueRow: QueueRow; partition: number }>

export class Transaction {
  readonly connection: Connection
  readonly countChanges = new CountChanges()
  readonly campaigns = new CampaignChanges()
  readonly random: () => number
  readonly #store: StoreContext
  /** The slot of its counts (`CountSlots`). */
  readonly slot: number
  readonly #hasRepeats: boolean
  readonly #groups = new Map<string, number>()
  readonly #joinedGroups = new Map<string, number>()
  readonly #firstSeenAt = new Map<number, Instant>()
  readonly #queues = new Map<string, QueueRow>()
  readonly #changed = new Map<string, Row | undefined>()
  readonly #locked = new Map<string, LockedPartition>()
  readonly #letterStores = new Set<number>()

  /** `hasRepeats`: an earlier attempt found letters whose source id already exists. */
  constructor(connection: Connection, store: StoreContext, hasRepeats = false) {
    this.connection = connection
    this.random = store.random
    this.#store = store
    this.slot = store.slots.transaction
    this.#hasRepeats = hasRepeats
  }

  /** Reads the queues and their dead queues. */
  async load(names: readonly string[]): Promise<void> {
    if (names.length === 0) return
    const rows = await this.connection.query(
      {
        name: 'load-queues',
        text: `select * from redrive.queues q where q.name = any ($1::text[])
          union select d.* from redrive.queues q join redrive.queues d on d.name = q.dead_queue
          where q.name = any ($1::text[])`,
      },
      [encodeTexts(names)],
    )
    for (const row of rows) this.#keep(row)
  }

  /** The queues of rows that were read, by id. A queue cannot be deleted while one of its rows is locked. */
  async getByIds(ids: readonly number[]): Promise<Map<number, QueueRow>> {
    const wanted = new Set(ids)
    const found = new Map<number, QueueRow>()
    for (const queueRow of this.#queues.values())
      if (wanted.has(queueRow.id)) found.set(queueRow.id, queueRow)
    const missing = [...wanted].filter((id) => !found.has(id))
    if (missing.length === 0) return found
    const rows = await this.connection.query(
      { name: 'queues-by-id', text: 'select * from redrive.queues where id = any ($1::int4[])' },
      [encodeInt4s(missing)],
    )
    for (const row of rows) {
      const queueRow = this.#keep(row)
      found.set(queueRow.id, queueRow)
    }
    return found
  }

  #keep(row: Row): QueueRow {
    const read = toQueueRow(row)
    const queueRow = { ...read, isLetterStore: read.isLetterStore || this.#letterStores.has(read.id) }
    this.#queues.set(queueRow.queue.name, queueRow)
    return queueRow
  }

  /** The queue, if it was loaded before. */
  getLoaded(name: string): QueueRow | undefined {
    return this.#queues.get(name)
  }

  async find(name: string): Promise<QueueRow | undefined> {
    if (!this.#queues.has(name) && !this.#changed.has(name)) await this.load([name])
    return this.#queues.get(name)
  }

  async get(name: string): Promise<QueueRow> {
    const queueRow = await this.find(name)
    if (queueRow === undefined) throw createQueueNotFoundError(name)
    return queueRow
  }

  /** The queue. Refuses a partition that it does not have. */
  async getWithPartition(name: string, partition: number): Promise<QueueRow> {
    const queueRow = await this.get(name)
    checkPartition(queueRow.queue, partition)
    return queueRow
  }

  /** This transaction created or changed a queue, or deleted it (no row). */
  setChanged(name: string, row: Row | undefined): void {
    this.#changed.set(name, row)
    if (row === undefined) this.#queues.delete(name)
    else this.#queues.set(name, toQueueRow(row))
  }

  async lockPartitions(partitions: readonly PartitionRef[]): Promise<void> {
    const missing = partitions.filter(
      ({ queueRow, partition }) => !this.#locked.has(`${queueRow.id}/${partition}`),
    )
    if (missing.length === 0) return
    const rows = await this.connection.query(
      {
        name: 'lock-partitions',
        text: `select p.queue_id, p.partition, p.last_id
          from unnest($1::int4[], $2::int4[], $3::int4[]) as w(queue_id, partition, rank)
            join redrive.partitions p on p.queue_id = w.queue_id and p.partition = w.partition
          order by w.rank, p.queue_id, p.partition for update of p`,
      },
      [
        encodeInt4s(missing.map(({ queueRow }) => queueRow.id)),
        encodeInt4s(missing.map(({ partition }) => partition)),
        encodeInt4s(missing.map(({ queueRow }) => (queueRow.queue.deadQueue === null ? 1 : 0))),
      ],
    )
    for (const row of rows) {
      const locked = toLockedPartition(row)
      this.#locked.set(`${locked.queueId}/${locked.partition}`, locked)
    }
    const gone = missing.find(({ queueRow, partition }) => !this.#locked.has(`${queueRow.id}/${partition}`))
    if (gone !== undefined) throw new StaleReadError(`queue ${gone.queueRow.queue.name}`)
  }

  /** New ids for a partition that this transaction has locked, so that no other writer creates ids in it. */
  allocateIds(queueRow: QueueRow, partition: number, now: Instant, count: number): string[] {
    const locked = this.#locked.get(`${queueRow.id}/${partition}`)
    if (locked === undefined)
      throw new Error(`partition ${partition} of ${queueRow.queue.name} is not locked`)
    const ids = createKsuids(locked.lastId === '' ? undefined : locked.lastId, now, count, this.random)
    const last = ids.at(-1)
    if (last === undefined) return ids
    locked.lastId = last
    locked.isUsed = true
    return ids
  }

  /** Records that the queue has a row in `items_sourced`, which holds the items with a source id. */
  markLetterStore(queueRow: QueueRow): void {
    if (queueRow.isLetterStore) return
    this.#letterStores.add(queueRow.id)
    this.#queues.set(queueRow.queue.name, { ...queueRow, isLetterStore: true })
  }

  get queueCache(): QueueCache {
    return this.#store.queueCache
  }

  /** The time for commands without a time of their own. */
  now(): Instant {
    return this.#store.clock.now()
  }

  /**
   * `at`, or the time of the database if that is earlier: a server whose time is wrong must not end the lease
   * or the lock of another server too early.
   */
  boundByDatabaseClock(at: Instant): Promise<Instant> {
    return this.#store.clock.bound(this.connection, at)
  }

  getGroupId(key: string): number | undefined {
    return this.#groups.get(key) ?? this.#joinedGroups.get(key) ?? this.#store.groups.getId(key)
  }

  /**
   * The group of a cause that has no group of its own. Not cached beyond this transaction: the stored groups
   * decide each time, so that all servers decide alike.
   */
  putJoinedGroupId(key: string, groupId: number): void {
    this.#joinedGroups.set(key, groupId)
  }

  /** Adds a group to the cache of the server, once this transaction is committed. */
  putGroupId(key: string, groupId: number): void {
    this.#groups.set(key, groupId)
  }

  isSeenBy(groupId: number, at: Instant): boolean {
    return (
      (this.#firstSeenAt.get(groupId) ?? Number.POSITIVE_INFINITY) <= at ||
      this.#store.groups.isSeenBy(groupId, at)
    )
  }

  /** Caches that the group has a letter from `at` or earlier, once this transaction is committed. */
  putFirstSeen(groupId: number, at: Instant): void {
    if (!this.isSeenBy(groupId, at)) this.#firstSeenAt.set(groupId, at)
  }

  /** Removes and returns the prefetched snapshots of these letters. */
  takePrefetched(letterIds: readonly string[]): ReturnType<PrefetchedLetters['take']> {
    return this.#store.prefetchedLetters.take(letterIds)
  }

  /** Whether letters that arrive in these queues are likely to exist already. */
  expectsRepeats(queueIds: readonly number[]): boolean {
    return this.#hasRepeats || this.#store.repeats.areExpected(queueIds)
  }

  recordRepeats(queueIds: readonly number[], hadRepeats: boolean): void {
    this.#store.repeats.record(queueIds, hadRepeats)
  }

  /** Writes the counts of letters. Call it before a search for letters, because searches use the counts. */
  async flushLetters(): Promise<void> {
    await lowerFirstSeen(this)
    await this.#writeLetters()
  }

  async #writeLetters(): Promise<void> {
    const { letters } = this.countChanges
    if (letters.isEmpty) return
    const firstMinute = await this.#store.firstMinute.read(this.connection)
    await this.connection.query(writeLetterCountChanges, [...letters.encode(firstMinute), this.slot])
    letters.clear()
  }

  /**
   * Writes the collected changes, as the last statements before the commit. The statements are sent without
   * waiting for each other's answers, because partitions are locked until the commit.
   */
  async flush(): Promise<void> {
    await lowerFirstSeen(this)
    const moved = await this.campaigns.writeMoves(this.connection)
    await awaitAll([this.#setLastIds(), this.#writeCounts(), this.#writeLetters()])
    await this.campaigns.writeCounts(this.connection, moved, this.slot)
    if (this.#letterStores.size > 0) {
      await this.connection.query(
        {
          text: `update redrive.queues set is_sourced = true, version = version + 1
            where id = any ($1::int4[]) and not is_sourced`,
        },
        [encodeInt4s([...this.#letterStores])],
      )
    }
  }

  async #setLastIds(): Promise<void> {
    const used = [...this.#locked.values()].filter((locked) => locked.isUsed)
    if (used.length === 0) return
    await this.connection.query(
      {
        name: 'set-last-ids',
        text: `update redrive.partitions p set last_id = u.last_id
          from unnest($1::int4[], $2::int4[], $3::text[]) as u(queue_id, partition, last_id)
          where p.queue_id = u.queue_id and p.partition = u.partition`,
      },
      [
        encodeInt4s(used.map((locked) => locked.queueId)),
        encodeInt4s(used.map((locked) => locked.partition)),
        encodeTexts(used.map((locked) => locked.lastId)),
      ],
    )
  }

  async #writeCounts(): Promise<void> {
    if (!this.countChanges.isEmpty)
      await this.connection.query(writeCountChanges, [...this.countChanges.encode(), this.slot])
  }

  /** Updates the caches of the server. Call it after the commit. */
  publishToCaches(queueCache: QueueCache): void {
    for (const queueRow of this.#queues.values())
      if (this.#letterStores.has(queueRow.id)) queueCache.invalidate(queueRow.queue.name)
    for (const name of this.#changed.keys()) queueCache.invalidate(name)
    for (const [key, id] of this.#groups) this.#store.groups.putId(key, id)
    for (const [groupId, at] of this.#firstSeenAt) this.#store.groups.putFirstSeen(groupId, at)
    for (const locked of this.#locked.values()) {
      if (locked.isUsed) queueCache.setLastId(locked.queueId, locked.partition, locked.lastId)
    }
  }
}

function toLockedPartition(row: Row): LockedPartition {
  return {
    queueId: readNumber(row, 'queue_id'),
    partition: readNumber(row, 'partition'),
    lastId: readText(row, 'last_id'),
    isUsed: false,
  }
}
