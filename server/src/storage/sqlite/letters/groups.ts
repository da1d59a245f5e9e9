import { type Cause, foldCause, toCause } from '../../../core/cause.ts'
import type { Instant } from '../../../core/instant.ts'
import type { ItemHead } from '../../../core/item.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { QueueRow } from '../queues/queue-cache.ts'

const lowerFirstSeenSql = 'update groups set first_seen_at = ? where id = ? and first_seen_at > ?'
const insertSql = `insert into groups (queue_id, fingerprint, origin, reason, slug, error_class, title, first_seen_at)
  values (?, ?, ?, ?, ?, ?, ?, ?) returning id`

/**
 * The groups of letters, cached by the only writer of the file. It reads the groups of a queue on first use
 * and must call `invalidate` after every rollback.
 */
export class GroupCache {
  readonly #database: Database
  /** By queue and fingerprint. */
  readonly #ids = new Map<number, Map<string, number>>()
  /** The stored `first_seen_at` of each group, or a later time. */
  readonly #firstSeenAt = new Map<number, Instant>()

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * The group of a letter that died or failed again at `seenAt`. Creates the group if it does not exist and
   * `mayCreate` allows it; otherwise undefined.
   */
  findOrCreate(
    queueRow: QueueRow,
    letter: ItemHead,
    seenAt: Instant,
    mayCreate?: () => boolean,
  ): number | undefined {
    const cause = toCause(letter.failure, letter.origin ?? { name: '' })
    return this.findOrCreateByCause(queueRow, cause, seenAt, mayCreate)
  }

  findOrCreateByCause(
    queueRow: QueueRow,
    cause: Cause,
    seenAt: Instant,
    mayCreate?: () => boolean,
  ): number | undefined {
    const ids = this.#readIds(queueRow.id)
    const id = ids.get(cause.fingerprint)
    if (id !== undefined || mayCreate?.() === false) return id
    return this.#create(queueRow, ids, cause, seenAt)
  }

  /**
   * Records that a letter of the group died or failed again at `at`. Letters may arrive in another order than
   * they died. Writes nothing for letters that arrive in order.
   */
  lowerFirstSeen(groupId: number, at: Instant): void {
    const firstSeenAt = this.#firstSeenAt.get(groupId)
    if (firstSeenAt !== undefined && firstSeenAt <= at) return
    this.#database.run(lowerFirstSeenSql, at, groupId, at)
    this.#firstSeenAt.set(groupId, at)
  }

  invalidate(): void {
    this.#ids.clear()
    this.#firstSeenAt.clear()
  }

  #create(queueRow: QueueRow, ids: Map<string, number>, cause: Cause, seenAt: Instant): number {
    const coarser = foldCause(cause, ids.size)
    if (coarser === undefined) return this.#insert(queueRow, ids, cause, seenAt)
    return ids.get(coarser.fingerprint) ?? this.#create(queueRow, ids, coarser, seenAt)
  }

  #insert(queueRow: QueueRow, ids: Map<string, number>, cause: Cause, seenAt: Instant): number {
    const { fingerprint, origin, reason, slug, errorClass, title } = cause
    const values = [queueRow.id, fingerprint, origin, reason, slug, errorClass, title, seenAt]
    const id = readNumber(this.#database.array(insertSql, ...values) ?? [], 0)
    ids.set(fingerprint, id)
    this.#firstSeenAt.set(id, seenAt)
    return id
  }

  #readIds(queueId: number): Map<string, number> {
    const cached = this.#ids.get(queueId)
    if (cached !== undefined) return cached
    const sql = 'select fingerprint, id, first_seen_at from groups where queue_id = ?'
    const ids = new Map<string, number>()
    for (const row of this.#database.arrays(sql, queueId)) {
      const id = readNumber(row, 1)
      ids.set(readText(row, 0), id)
      this.#firstSeenAt.set(id, readNumber(row, 2))
    }
    this.#ids.set(queueId, ids)
    return ids
  }
}
