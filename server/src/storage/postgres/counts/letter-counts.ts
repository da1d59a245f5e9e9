/**
 * The changes that a transaction makes to the counts of letters: by group, state and redrives; of open
 * letters by the minute and hour of their death; of arrivals by group and hour. The counts are divided into
 * slots, like the counts of items. A transaction writes them once, in sorted order, so that writers lock rows
 * in one order.
 */

import { type ItemHead, toListedState } from '../../../core/items/item.ts'
import { type Instant, usPerSecond } from '../../../core/time/instant.ts'
import { redrivesCounted } from '../../contract/letters.ts'
import { countRedrives } from '../../shared/letters/counted-filter.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s } from '../connection/encode-arrays.ts'
import { stateCodes } from '../items/rows.ts'
import { addToSums } from './letter-count-rollups.ts'

export const usPerMinute = 60 * usPerSecond
export const minutesPerHour = 60
export const usPerHour = minutesPerHour * usPerMinute
/** The numbers of redrives that are counted separately. */
const redrivesPerState = redrivesCounted + 1

/** `firstAt` and `lastAt`: the first and the last arrival in an hour. */
type Sum = {
  readonly key: readonly [number, number, number, number]
  n: number
  firstAt: Instant
  lastAt: Instant
}

/**
 * Sums by two numbers. Each letter is added to four sums, and to create a text as a key would cost more than
 * all else.
 */
class Sums {
  readonly #byOuter = new Map<number, Map<number, Sum>>()

  get isEmpty(): boolean {
    return this.#byOuter.size === 0
  }

  /** `outer` and `inner` together identify the key `[a, b, c, d]`. */
  add(outer: number, inner: number, a: number, b: number, c: number, d: number, by: number): Sum {
    let sums = this.#byOuter.get(outer)
    if (sums === undefined) {
      sums = new Map()
      this.#byOuter.set(outer, sums)
    }
    let sum = sums.get(inner)
    if (sum === undefined) {
      sum = { key: [a, b, c, d], n: by, firstAt: Number.POSITIVE_INFINITY, lastAt: Number.NEGATIVE_INFINITY }
      sums.set(inner, sum)
    } else sum.n += by
    return sum
  }

  /** The first arrival of each outer number, over all keys that start with it. */
  *listFirstArrivals(): Iterable<readonly [outer: number, firstAt: Instant]> {
    for (const [outer, sums] of this.#byOuter) {
      let first = Number.POSITIVE_INFINITY
      for (const { firstAt } of sums.values()) first = Math.min(first, firstAt)
      yield [outer, first]
    }
  }

  dropQueue(queueId: number): void {
    for (const sums of this.#byOuter.values()) {
      for (const [inner, sum] of sums) if (sum.key[0] === queueId) sums.delete(inner)
    }
  }

  clear(): void {
    this.#byOuter.clear()
  }

  /** The sums that are not zero, in the order of their keys. */
  listSorted(): Sum[] {
    return [...this.#byOuter.values()]
      .flatMap((sums) => [...sums.values()])
      .filter(({ n }) => n !== 0)
      .sort(({ key: a }, { key: b }) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3])
  }
}

export class LetterCountChanges {
  readonly #letters = new Sums()
  readonly #open = new Sums()
  readonly #hours = new Sums()
  /** The last arrival in each group. Letters that moved to another group did not arrive. */
  readonly #arrived = new Map<number, Instant>()

  addLetter(queueId: number, item: ItemHead, by: number): void {
    if (item.groupId === null) return
    const minute = toMinute(item.deadLetteredAt ?? 0)
    this.add(queueId, item.groupId, stateCodes[toListedState(item)], item.retryCount, minute, by)
  }

  add(queueId: number, groupId: number, state: number, redrives: number, minute: number, by: number): void {
    this.addToGroup(queueId, groupId, state, countRedrives(redrives), by)
    if (!openStates.includes(state)) return
    this.addOpen(queueId, 1, minute, by)
    this.addOpen(queueId, minutesPerHour, Math.trunc(minute / minutesPerHour), by)
  }

  addToGroup(queueId: number, groupId: number, state: number, redrives: number, by: number): void {
    this.#letters.add(groupId, state * redrivesPerState + redrives, queueId, groupId, state, redrives, by)
  }

  addOpen(queueId: number, span: number, number: number, by: number): void {
    this.#open.add(queueId, number * 2 + (span === 1 ? 0 : 1), queueId, span, number, 0, by)
  }

  /** The group got a letter that died or failed again at `at`; -1: the letter moved to another group. */
  addArrival(queueId: number, groupId: number, at: Instant, by: 1 | -1 = 1): void {
    const hour = Math.trunc(toMinute(at) / minutesPerHour)
    const sum = this.#hours.add(groupId, hour, queueId, groupId, hour, 0, by)
    if (at < sum.firstAt) sum.firstAt = at
    if (at > sum.lastAt) sum.lastAt = at
  }

  /** The group got a letter, which did not come from another group: it is no longer resolved. */
  noteArrival(groupId: number, at: Instant): void {
    this.#arrived.set(groupId, Math.max(at, this.#arrived.get(groupId) ?? at))
  }

  /** The groups that got letters, each with the earliest death or failure of these letters. */
  listFirstArrivals(): Iterable<readonly [groupId: number, at: Instant]> {
    return this.#hours.listFirstArrivals()
  }

  dropQueue(queueId: number): void {
    for (const sums of [this.#letters, this.#open, this.#hours]) sums.dropQueue(queueId)
  }

  clear(): void {
    this.#letters.clear()
    this.#open.clear()
    this.#hours.clear()
    this.#arrived.clear()
  }

  get isEmpty(): boolean {
    return this.#letters.isEmpty && this.#open.isEmpty && this.#hours.isEmpty
  }

  /**
   * The parameters of `writeLetterCountChanges`. `firstMinute`: the start of an hour. Open letters that died
   * before it are not counted by time.
   */
  encode(firstMinute: number): Buffer[] {
    const letters = this.#letters.listSorted()
    const open = this.#open.listSorted().filter(({ key: [, span, number] }) => number * span >= firstMinute)
    const hours = this.#hours.listSorted()
    const encodeColumn = (sums: readonly Sum[], at: 0 | 1 | 2 | 3) =>
      encodeInt4s(sums.map(({ key }) => key[at]))
    const encodeCounts = (sums: readonly Sum[]) => encodeInt8s(sums.map(({ n }) => n))
    return [
      ...[
        encodeColumn(letters, 0),
        encodeColumn(letters, 1),
        encodeColumn(letters, 2),
        encodeColumn(letters, 3),
        encodeCounts(letters),
      ],
      ...[encodeColumn(open, 0), encodeColumn(open, 1), encodeColumn(open, 2), encodeCounts(open)],
      ...[encodeColumn(hours, 0), encodeColumn(hours, 1), encodeColumn(hours, 2), encodeCounts(hours)],
      encodeInt8s(hours.map(({ lastAt }) => lastAt)),
      ...[encodeInt4s([...this.#arrived.keys()]), encodeInt8s([...this.#arrived.values()])],
    ]
  }
}

/** The codes of the states of letters that wait for a decision. */
export const openStates: readonly number[] = [stateCodes.waiting, stateCodes.scheduled, stateCodes.dead]

/** Rounded towards zero, as the database divides integers. */
export function toMinute(instant: number): number {
  return Math.trunc(instant / usPerMinute)
}

/**
 * Ends the resolved state of groups that got letters, and leaves a notice for the alerts. `$15` and `$16`:
 * the groups, and their last arrivals.
 */
const regressGroups = `arrived as materialized (
      select g.id, g.queue_id, max(a.at) as at from unnest($15::int4[], $16::int8[]) as a(id, at)
        cross join lateral (
          select coalesce(f.merged_into, f.id) as id, f.queue_id from redrive.groups f where f.id = a.id offset 0) g
      group by g.id, g.queue_id order by g.id
    ), regressed as (
      update redrive.group_lifecycles l set state = 'regressed', changed_at = greatest(l.changed_at, a.at)
      from arrived a where l.group_id = a.id and l.state = 'resolved' returning l.group_id, l.queue_id, a.at
    ), noticed as (
      insert into redrive.group_notices as n (group_id, queue_id, kind, at)
      select r.group_id, r.queue_id, 'regressed', r.at from regressed r
      on conflict (group_id) do update set kind = excluded.kind, at = greatest(n.at + 1, excluded.at)
    )`

/** `$17` is the slot. */
export const writeLetterCountChanges: Statement = {
  name: 'write-letter-count-changes',
  text: `with letters as materialized (
      select * from unnest($1::int4[], $2::int4[], $3::int4[], $4::int4[], $5::int8[]) as d(queue_id, group_id, state, redrives, n)
    ), counted as (
      insert into redrive.letter_counts as c (queue_id, group_id, state, redrives, slot, n)
      select d.queue_id, d.group_id, d.state, d.redrives, $17::int4, d.n from letters d
      on conflict (queue_id, group_id, state, redrives, slot) do update set n = c.n + excluded.n
    ), ${addToSums('letters', '$17::int4')}, opened as (
      insert into redrive.open_letters as c (queue_id, span, number, slot, n)
      select d.queue_id, d.span, d.number, $17::int4, d.n
      from unnest($6::int4[], $7::int4[], $8::int4[], $9::int8[]) as d(queue_id, span, number, n)
      on conflict (queue_id, span, number, slot) do update set n = c.n + excluded.n
    ), ${regressGroups}
    insert into redrive.group_hours as c (queue_id, group_id, hour, slot, n, last_at)
    select d.queue_id, d.group_id, d.hour, $17::int4, d.n, d.last_at
    from unnest($10::int4[], $11::int4[], $12::int4[], $13::int8[], $14::int8[]) as d(queue_id, group_id, hour, n, last_at)
    on conflict (queue_id, group_id, hour, slot) do update
      set n = c.n + excluded.n, last_at = greatest(c.last_at, excluded.last_at)`,
}
