import { type Cause, foldCause, toCause } from '../../../core/cause.ts'
import { type Instant, usPerSecond } from '../../../core/instant.ts'
import type { Item } from '../../../core/item.ts'
import type { ListedState } from '../../contract/items.ts'
import type { GroupArrivals, GroupFacts, GroupSlug, GroupsQuery } from '../../contract/letters.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import { cellConditions, groupConditions, queueNames } from '../counts/letter-counts.ts'
import { listedOfCode } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'

const usPerHour = 3_600 * usPerSecond

const lowerFirstSeenSql = 'update groups set first_seen_at = ? where id = ? and first_seen_at > ?'

/** The groups as the one writer of this file sees them. Whoever rolls back must call `forget`. */
export class GroupCache {
  readonly #database: Database
  /** By queue and fingerprint. */
  readonly #ids = new Map<number, Map<string, number>>()
  /** Each was first seen then, or earlier. */
  readonly #seenAt = new Map<number, Instant>()

  constructor(database: Database) {
    this.#database = database
  }

  /** The group of a letter that was seen then, made when there is none of its cause and `mayMake` says so. */
  idOf(queueRow: QueueRow, letter: Item, seenAt: Instant, mayMake?: () => boolean): number | undefined {
    return this.idOfCause(queueRow, toCause(letter.failure, letter.origin ?? { name: '' }), seenAt, mayMake)
  }

  idOfCause(queueRow: QueueRow, cause: Cause, seenAt: Instant, mayMake?: () => boolean): number | undefined {
    const ids = this.#idsOf(queueRow.id)
    const id = ids.get(cause.fingerprint)
    if (id !== undefined || mayMake?.() === false) return id
    return this.#make(queueRow, ids, cause, seenAt)
  }

  /**
   * The group got a letter that died then, or failed anew. Letters come to be queueRow in another order than that of their deaths;
   * those that come in order write nothing.
   */
  see(groupId: number, at: Instant): void {
    const seenAt = this.#seenAt.get(groupId)
    if (seenAt !== undefined && seenAt <= at) return
    this.#database.run(lowerFirstSeenSql, at, groupId, at)
    this.#seenAt.set(groupId, at)
  }

  forget(): void {
    this.#ids.clear()
    this.#seenAt.clear()
  }

  #make(queueRow: QueueRow, ids: Map<string, number>, cause: Cause, at: Instant): number {
    const coarser = foldCause(cause, ids.size)
    if (coarser === undefined) return this.#insert(queueRow, ids, cause, at)
    return ids.get(coarser.fingerprint) ?? this.#make(queueRow, ids, coarser, at)
  }

  #insert(queueRow: QueueRow, ids: Map<string, number>, cause: Cause, at: Instant): number {
    const id = this.#database.array(
      `insert into groups (queue_id, fingerprint, origin, reason, slug, error_class, title, first_seen_at)
       values (?, ?, ?, ?, ?, ?, ?, ?) returning id`,
      queueRow.id,
      cause.fingerprint,
      cause.origin,
      cause.reason,
      cause.slug,
      cause.errorClass,
      cause.title,
      at,
    )?.[0] as number
    ids.set(cause.fingerprint, id)
    this.#seenAt.set(id, at)
    return id
  }

  #idsOf(queueId: number): Map<string, number> {
    let ids = this.#ids.get(queueId)
    if (ids === undefined) {
      const sql = 'select fingerprint, id, first_seen_at from groups where queue_id = ?'
      ids = new Map()
      for (const [fingerprint, id, seenAt] of this.#database.arrays(sql, queueId)) {
        ids.set(fingerprint as string, id as number)
        this.#seenAt.set(id as number, seenAt as number)
      }
      this.#ids.set(queueId, ids)
    }
    return ids
  }
}

export function listGroups(database: Database, query: GroupsQuery): GroupFacts[] {
  const { filter, after, countMax, isEmptyToo } = query
  const cell = cellConditions(filter)
  const group = groupConditions(database, filter, isEmptyToo ? 'g' : 'c')
  const id = isEmptyToo ? 'g.id' : 'c.group_id'
  const count = 'coalesce(sum(c.n), 0)'
  const source = isEmptyToo
    ? `groups g left join letter_counts c on c.queue_id = g.queue_id and c.group_id = g.id and ${cell.where}
       where ${group.where}`
    : `letter_counts c ${group.hasGroup ? 'join groups g on g.id = c.group_id' : ''}
       where ${cell.where} and ${group.where}`
  const values: Bound[] = [...cell.values, ...group.values]
  if (after !== undefined) values.push(after.count, after.count, after.id)
  const rows = database.arrays(
    `select ${id}, ${count} from ${source} group by ${id}
     ${after === undefined ? '' : `having ${count} < ? or (${count} = ? and ${id} > ?)`}
     order by 2 desc, 1 limit +?`,
    ...values,
    countMax,
  )
  const names = queueNames(database)
  return rows.map(([groupId, matching]) => {
    const row = database.get('select * from groups where id = ?', groupId as number) as Row
    const [facts, lastSeenAt] = [factsOf(row, names), lastSeenOf(database, row)]
    return {
      ...facts,
      // The letter that a group was made for may have been there already, and is not counted then.
      firstSeenAt: Math.min(facts.firstSeenAt, lastSeenAt),
      lastSeenAt,
      sampleId: newestOf(database, row),
      count: matching as number,
      states: statesOf(database, row, cell),
    }
  })
}

function factsOf(row: Row, names: ReadonlyMap<number, string>) {
  return {
    id: row.id as number,
    queue: names.get(row.queue_id as number) ?? '',
    fingerprint: row.fingerprint as string,
    origin: row.origin as string,
    reason: row.reason as string,
    slug: row.slug as string,
    errorClass: row.error_class as string,
    title: row.title as string,
    firstSeenAt: row.first_seen_at as number,
  }
}

function statesOf(
  database: Database,
  group: Row,
  cell: ReturnType<typeof cellConditions>,
): Partial<Record<ListedState, number>> {
  const rows = database.arrays(
    `select c.state, sum(c.n) from letter_counts c where c.queue_id = ? and c.group_id = ? and ${cell.where}
     group by c.state`,
    group.queue_id as number,
    group.id as number,
    ...cell.values,
  )
  return Object.fromEntries(rows.map(([state, n]) => [listedOfCode(state), n as number]))
}

/** A group that was made for a letter from the archive has got none since. */
function lastSeenOf(database: Database, group: Row): Instant {
  const sql = 'select last_at from group_hours where group_id = ? order by hour desc limit 1'
  return (database.array(sql, group.id as number)?.[0] ?? group.first_seen_at) as number
}

/** One look into the index for each state and number of redrives that the group has letters in. */
function newestOf(database: Database, group: Row): string | null {
  const cells = database.arrays(
    'select state, redrives from letter_counts where queue_id = ? and group_id = ?',
    group.queue_id as number,
    group.id as number,
  )
  let newest: Readonly<{ diedAt: number; id: string; rowid: number }> | undefined
  for (const [state, redrives] of cells) {
    const row = database.array(
      `select died_at, id, rowid from items
       where group_id = ? and letter_state = ? and letter_redrives = ? order by died_at desc, id desc limit 1`,
      group.id as number,
      state as number,
      redrives as number,
    )
    if (row === undefined) continue
    const [diedAt, id, rowid] = row as unknown as readonly [number, string, number]
    const isNewer =
      newest === undefined || diedAt > newest.diedAt || (diedAt === newest.diedAt && id > newest.id)
    if (isNewer) newest = { diedAt, id, rowid }
  }
  if (newest === undefined) return null
  return database.array('select root_id from items where rowid = ?', newest.rowid)?.[0] as string
}

export function groupSlugs(database: Database, groupIds: readonly number[]): GroupSlug[] {
  return [...new Set(groupIds)].flatMap((id) => {
    const row = database.array('select slug from groups where id = ?', id)
    return row === undefined ? [] : [{ id, slug: row[0] as string }]
  })
}

export function groupArrivals(
  database: Database,
  groupIds: readonly number[],
  since: Instant,
): GroupArrivals[] {
  const from = Math.floor(since / usPerHour)
  return [...new Set(groupIds)].flatMap((groupId) =>
    database
      .arrays('select hour, n from group_hours where group_id = ? and hour >= ? order by hour', groupId, from)
      .map(([hour, n]) => ({ groupId, hour: (hour as number) * usPerHour, count: n as number })),
  )
}
