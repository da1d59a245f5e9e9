import { type Cause, foldCause, toCause } from '../../../core/dead-letters/cause.ts'
import { GroupIndex } from '../../../core/grouping/group-index.ts'
import { type GroupMatch, matchGroup } from '../../../core/grouping/match-group.ts'
import { compileRules } from '../../../core/grouping/rules.ts'
import type { ItemHead } from '../../../core/items/item.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { coverGroups, findAliasedKey, listAlike, mergeAlikeCauses } from '../groups/merge-groups.ts'
import type { QueueRow } from '../queues/queue-cache.ts'

const lowerFirstSeenSql = 'update groups set first_seen_at = ? where id = ? and first_seen_at > ?'
const insertSql = `insert into groups (queue_id, fingerprint, cause_key, bucket, origin, reason, slug, error_class, title, template, first_seen_at, merged_into)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`
const noticeSql = `insert into group_notices (group_id, queue_id, kind, at) values (?, ?, 'new', ?)`
const widenSql = 'update groups set title = ?, template = ? where id = ?'

/**
 * The groups of letters, cached by the only writer of the file. It reads the groups of a queue on first use
 * and must call `invalidate` after every rollback.
 *
 * A cause without a group may belong to a group that exists (`core/grouping/match-group.ts`): the template of
 * that group becomes wider, and groups that it then covers are shown as part of it (`merged_into`). The
 * letters of such groups stay where they are.
 */
export class GroupCache {
  readonly #database: Database
  /** By queue. */
  readonly #indexes = new Map<number, GroupIndex>()
  /** The stored `first_seen_at` of each group, or a later time. */
  readonly #firstSeenAt = new Map<number, Instant>()

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * The group of a letter that died or failed again at `seenAt`. Creates the group if it does not exist and
   * `mayCreate` allows it; otherwise undefined. `readPayload`: called if a rule of the queue needs it.
   */
  findOrCreate(
    queueRow: QueueRow,
    letter: ItemHead,
    seenAt: Instant,
    options: Readonly<{ mayCreate?: () => boolean; readPayload?: () => Uint8Array | undefined }> = {},
  ): number | undefined {
    const rules = compileRules(queueRow.queue.groupingRules)
    const payload = rules?.readsPayload === true ? options.readPayload?.() : undefined
    const cause = toCause(letter.failure, letter.origin ?? { name: '' }, rules, payload)
    return this.findOrCreateByCause(queueRow, cause, seenAt, options.mayCreate)
  }

  findOrCreateByCause(
    queueRow: QueueRow,
    cause: Cause,
    seenAt: Instant,
    mayCreate?: () => boolean,
  ): number | undefined {
    const index = this.#readIndex(queueRow.id)
    const id = index.find(cause.fingerprint)
    if (id !== undefined || mayCreate?.() === false) return id
    const match = index.match(cause)
    if (match.kind === 'create') return this.#create(queueRow, index, cause, seenAt)
    if (match.kind === 'widen') this.#widen(index, cause, match)
    return match.id
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
    this.#indexes.clear()
    this.#firstSeenAt.clear()
  }

  #create(queueRow: QueueRow, index: GroupIndex, cause: Cause, seenAt: Instant): number {
    const coarser = foldCause(cause, index.size)
    if (coarser === undefined) return this.#insert(queueRow, index, cause, seenAt)
    return index.find(coarser.fingerprint) ?? this.#create(queueRow, index, coarser, seenAt)
  }

  #insert(queueRow: QueueRow, index: GroupIndex, cause: Cause, seenAt: Instant): number {
    const { fingerprint, bucket, origin, errorCode, slug, errorClass, title, template } = cause
    const causeKey = this.#findCauseKey(cause)
    const mergedInto = this.#findParent(queueRow, index, cause, seenAt)
    const id = readNumber(
      this.#database.getArray(
        insertSql,
        ...[
          queueRow.id,
          fingerprint,
          causeKey,
          bucket,
          origin,
          errorCode,
          slug,
          errorClass,
          title,
          template,
          seenAt,
          mergedInto,
        ],
      ) ?? [],
      0,
    )
    index.add({ id, fingerprint, origin, bucket, template })
    this.#firstSeenAt.set(id, seenAt)
    if (mergedInto === null) this.#database.run(noticeSql, id, queueRow.id, seenAt)
    return id
  }

  /** The group that shows this one from its creation, which is created first. */
  #findParent(queueRow: QueueRow, index: GroupIndex, cause: Cause, seenAt: Instant): number | null {
    const { parent } = cause
    if (parent === '') return null
    const parentCause = { ...cause, fingerprint: parent, parent: '' }
    const id = index.find(parent) ?? this.#insert(queueRow, index, parentCause, seenAt)
    const row = this.#database.getArray('select coalesce(merged_into, id) from groups where id = ?', id)
    return readNumber(row ?? [], 0)
  }

  #widen(index: GroupIndex, cause: Cause, match: Extract<GroupMatch, { kind: 'widen' }>): void {
    this.#database.run(widenSql, match.title, match.template, match.id)
    mergeAlikeCauses(this.#database, cause.bucket, match)
    coverGroups(this.#database, match.merged, match.id)
    index.widen(cause, match)
  }

  /** The key of a group in another queue that has the same cause, or a new one. */
  #findCauseKey({ bucket, template, causeKey }: Cause): string {
    const groups = listAlike(this.#database, bucket)
    const match = matchGroup(template, groups)
    const found = match.kind === 'create' ? undefined : groups.find(({ id }) => id === match.id)
    return found?.causeKey ?? findAliasedKey(this.#database, causeKey)
  }

  #readIndex(queueId: number): GroupIndex {
    const cached = this.#indexes.get(queueId)
    if (cached !== undefined) return cached
    const sql = `select fingerprint, id, first_seen_at, origin, bucket, template from groups
      where queue_id = ? order by id`
    const index = new GroupIndex()
    for (const row of this.#database.readArrays(sql, queueId)) {
      const id = readNumber(row, 1)
      index.add({
        id,
        fingerprint: readText(row, 0),
        origin: readText(row, 3),
        bucket: readText(row, 4),
        template: readText(row, 5),
      })
      this.#firstSeenAt.set(id, readNumber(row, 2))
    }
    this.#indexes.set(queueId, index)
    return index
  }
}
