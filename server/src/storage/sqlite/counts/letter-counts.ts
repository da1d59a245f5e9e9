/**
 * Counts of letters, by group, state and redrives, and of open ones by the minute in which they died. Changed
 * with the rows, so that what is shown of millions of letters costs the number of their groups.
 */
import { anyClass } from '../../../core/cause.ts'
import { type Instant, usPerSecond } from '../../../core/instant.ts'
import { type Item, listedState } from '../../../core/item.ts'
import type { QueueDifference } from '../../contract/difference.ts'
import type { ListedState } from '../../contract/items.ts'
import {
  type CountedBy,
  type CountedFilter,
  type LetterCount,
  type LetterCountsQuery,
  redrivesCounted,
} from '../../contract/letters.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import { listedCodes, listedOfCode } from '../items/rows.ts'

const usPerMinute = 60 * usPerSecond
export const usPerHour = 60 * usPerMinute

/** What waits for somebody. */
const openStates: readonly ListedState[] = ['waiting', 'scheduled', 'dead']
const openCodes = openStates.map((state) => listedCodes[state]).join(', ')
const isOpen = Array.from({ length: 8 }, (_, code) => openStates.some((state) => listedCodes[state] === code))

type Cell = { queueId: number; groupId: number; state: number; redrives: number; by: number }
type Minute = { queueId: number; minute: number; by: number }
type CampaignCell = { campaignId: string; state: number; by: number }
type Hour = { queueId: number; groupId: number; hour: number; by: number; lastAt: number }

/** The changes to these counts that a transaction makes. */
export class LetterTally {
  readonly #cells = new Map<number, Cell>()
  readonly #minutes = new Map<number, Minute>()
  readonly #hours = new Map<number, Hour>()
  readonly #campaigns = new Map<string, CampaignCell>()

  weigh(queueId: number, groupId: number, item: Item, by: 1 | -1): void {
    this.change(queueId, groupId, listedState(item), item.redrives, item.diedAt ?? 0, by)
  }

  /** The same for a letter of which only this is known. */
  change(
    queueId: number,
    groupId: number,
    state: ListedState,
    redrives: number,
    diedAt: Instant,
    by: 1 | -1,
  ): void {
    const counted = Math.min(redrives, redrivesCounted)
    const code = listedCodes[state]
    const cell = this.#cells.get(cellKey(groupId, code, counted))
    if (cell === undefined) this.#cell({ queueId, groupId, state: code, redrives: counted, by })
    else cell.by += by
    if (!isOpen[code]) return
    const minute = Math.floor(diedAt / usPerMinute)
    const before = this.#minutes.get(pairKey(queueId, minute))
    if (before === undefined) this.#minute({ queueId, minute, by })
    else before.by += by
  }

  /** The group got a letter: it died then, or failed anew. */
  arrive(queueId: number, groupId: number, at: Instant): void {
    this.#hour({ queueId, groupId, hour: Math.floor(at / usPerHour), by: 1, lastAt: at })
  }

  /** Letters of a campaign's set. */
  addToCampaign(campaignId: string, state: number, by: number): void {
    this.#campaign({ campaignId, state, by })
  }

  take(other: LetterTally): void {
    for (const cell of other.#campaigns.values()) this.#campaign({ ...cell })
    for (const cell of other.#cells.values()) this.#cell({ ...cell })
    for (const minute of other.#minutes.values()) this.#minute({ ...minute })
    for (const hour of other.#hours.values()) this.#hour({ ...hour })
  }

  drop(queueId: number): void {
    for (const deltas of [this.#cells, this.#minutes, this.#hours] as const) {
      for (const [key, delta] of deltas) if (delta.queueId === queueId) deltas.delete(key)
    }
  }

  clear(): void {
    this.#cells.clear()
    this.#minutes.clear()
    this.#hours.clear()
    this.#campaigns.clear()
  }

  write(database: Database): void {
    for (const { queueId, groupId, state, redrives, by } of this.#cells.values()) {
      if (by === 0) continue
      database.run(addToCell, queueId, groupId, state, redrives, by)
      if (by < 0) database.run(dropCell, queueId, groupId, state, redrives)
    }
    for (const { queueId, minute, by } of this.#minutes.values()) {
      if (by === 0) continue
      database.run(addToMinute, queueId, minute, by)
      if (by < 0) database.run(dropMinute, queueId, minute)
    }
    for (const { groupId, hour, by, lastAt } of this.#hours.values()) {
      database.run(addToHour, groupId, hour, by, lastAt)
    }
    for (const { campaignId, state, by } of this.#campaigns.values()) {
      if (by !== 0) database.run(addToCampaign, campaignId, state, by)
    }
  }

  #cell(cell: Cell): void {
    gather(this.#cells, cellKey(cell.groupId, cell.state, cell.redrives), cell)
  }

  #minute(minute: Minute): void {
    gather(this.#minutes, pairKey(minute.queueId, minute.minute), minute)
  }

  #hour(hour: Hour): void {
    const key = pairKey(hour.groupId, hour.hour)
    const before = this.#hours.get(key)
    if (before !== undefined) before.lastAt = Math.max(before.lastAt, hour.lastAt)
    gather(this.#hours, key, hour)
  }

  #campaign(cell: CampaignCell): void {
    gather(this.#campaigns, `${cell.state}/${cell.campaignId}`, cell)
  }
}

function cellKey(groupId: number, state: number, redrives: number): number {
  return (groupId * 8 + state) * 16 + redrives
}

/** As numbers: a text for each letter would cost more than all else here. Minutes and hours fit 32 bits, before 1970 too. */
function pairKey(id: number, time: number): number {
  return id * 2 ** 32 + time + 2 ** 31
}

function gather<K, D extends { by: number }>(deltas: Map<K, D>, key: K, delta: D): void {
  const before = deltas.get(key)
  if (before === undefined) deltas.set(key, delta)
  else before.by += delta.by
}

const addToCell = `insert into letter_counts (queue_id, group_id, state, redrives, n) values (?, ?, ?, ?, ?)
  on conflict (queue_id, group_id, state, redrives) do update set n = n + excluded.n`
const dropCell =
  'delete from letter_counts where queue_id = ? and group_id = ? and state = ? and redrives = ? and n = 0'
const addToMinute = `insert into open_minutes (queue_id, minute, n) values (?, ?, ?)
  on conflict (queue_id, minute) do update set n = n + excluded.n`
const dropMinute = 'delete from open_minutes where queue_id = ? and minute = ? and n = 0'
const addToHour = `insert into group_hours (group_id, hour, n, last_at) values (?, ?, ?, ?)
  on conflict (group_id, hour) do update set n = n + excluded.n, last_at = max(last_at, excluded.last_at)`

const hoursKept = 7 * 24

/** Forgets what no trend shows any more. The last hour of a group stays: it says when it was last seen. */
export function trimHours(database: Database, now: Instant): void {
  const from = Math.floor(now / usPerHour) - hoursKept
  // First: what `verify` looks at meanwhile is still there.
  database.run('update horizon set arrivals_from = ? where arrivals_from < ?', from, from)
  database.run(
    `delete from group_hours where hour < ? and exists (
       select 1 from group_hours n where n.group_id = group_hours.group_id and n.hour > group_hours.hour)`,
    from,
  )
}

const addToCampaign = `insert into campaign_counts (campaign_id, state, n) values (?, ?, ?)
  on conflict (campaign_id, state) do update set n = n + excluded.n`

/** Conditions on `letter_counts` c and `groups` g. `hasGroup`: whether one of them is about g. */
export type Conditions = Readonly<{
  where: string
  values: readonly Bound[]
  hasGroup: boolean
}>

/**
 * Those of a filter that hold for a whole group. `mayHaveClass`: also those groups whose letters are of any class, where
 * each letter is looked at.
 */
export function groupConditions(
  database: Database,
  filter: CountedFilter,
  table: 'c' | 'g',
  mayHaveClass = false,
): Conditions {
  const parts: string[] = []
  const values: Bound[] = []
  const anyOf = (column: string, list: readonly (string | number)[] | undefined) => {
    if (list === undefined) return
    parts.push(`${column} in (select value from json_each(?))`)
    values.push(JSON.stringify(list))
  }
  anyOf(`${table}.queue_id`, filter.queues && queueIds(database, filter.queues))
  anyOf(table === 'g' ? 'g.id' : 'c.group_id', filter.groupIds)
  const plain = parts.length
  anyOf('g.origin', filter.origins)
  anyOf('g.reason', filter.reasons)
  anyOf('g.slug', filter.slugs)
  const { errorClasses: classes } = filter
  anyOf('g.error_class', mayHaveClass && classes?.length ? [...classes, anyClass] : classes)
  return { where: parts.join(' and ') || 'true', values, hasGroup: parts.length > plain }
}

/** Those on state and redrives, as far as they are counted. */
export function cellConditions(filter: CountedFilter): Conditions {
  const parts: string[] = []
  if (filter.states !== undefined) {
    // In one order, so that few statements are prepared for the many ways to ask.
    const codes = [...new Set(filter.states.map((state) => listedCodes[state]))].sort()
    parts.push(`c.state in (${codes.join(', ')})`)
  }
  const { min, max } = filter.redrives ?? {}
  const values: Bound[] = []
  if (min !== undefined) {
    parts.push('c.redrives >= ?')
    values.push(Math.min(min, redrivesCounted))
  }
  if (max !== undefined && max < redrivesCounted) {
    parts.push('c.redrives <= ?')
    values.push(max)
  }
  return { where: parts.join(' and ') || 'true', values, hasGroup: false }
}

function queueIds(database: Database, names: readonly string[]): number[] {
  return names.flatMap((name) => {
    const row = database.get('select id from queues where name = ?', name)
    return row === undefined ? [] : [row.id as number]
  })
}

const byColumns: Record<CountedBy, string> = {
  queue: 'c.queue_id',
  state: 'c.state',
  group: 'c.group_id',
  origin: 'g.origin',
  reason: 'g.reason',
  slug: 'g.slug',
  errorClass: 'g.error_class',
  redrives: 'c.redrives',
}

export function countLetters(database: Database, { filter, by }: LetterCountsQuery): LetterCount[] {
  const group = groupConditions(database, filter, 'c')
  const cell = cellConditions(filter)
  const columns = by.map((name) => byColumns[name])
  const isJoined = group.hasGroup || columns.some((column) => column.startsWith('g.'))
  const rows = database.arrays(
    `select sum(c.n)${columns.map((column) => `, ${column}`).join('')} from letter_counts c
       ${isJoined ? 'join groups g on g.id = c.group_id' : ''}
     where ${group.where} and ${cell.where}
     ${columns.length === 0 ? '' : `group by ${columns.join(', ')}`}`,
    ...group.values,
    ...cell.values,
  )
  const names = by.includes('queue') ? queueNames(database) : undefined
  const counts: LetterCount[] = []
  for (const [count, ...values] of rows) {
    if (count === null || count === 0) continue
    const named: Record<string, unknown> = { count }
    for (const [index, name] of by.entries()) {
      const value = values[index]
      if (name === 'queue') named.queue = names?.get(value as number) ?? ''
      else named[name] = name === 'state' ? listedOfCode(value) : value
    }
    counts.push(named as LetterCount)
  }
  return counts
}

export function queueNames(database: Database): Map<number, string> {
  return new Map(
    database.arrays('select id, name from queues').map(([id, name]) => [id as number, name as string]),
  )
}

/** Whole minutes from their counts; of the minute that `since` is in, the rows. */
export function countOpenSince(
  database: Database,
  since: Instant,
  queues: readonly string[] | undefined,
): number {
  const minute = Math.floor(since / usPerMinute)
  const end = (minute + 1) * usPerMinute
  const ids = queues === undefined ? [...queueNames(database).keys()] : queueIds(database, queues)
  let open = 0
  // Queue by queue: each has its minutes next to each other.
  for (const queueId of new Set(ids)) {
    const sql =
      'select sum(n), sum(iif(minute = ?, n, 0)) from open_minutes where queue_id = ? and minute >= ?'
    const [sum, cut] = database.array(sql, minute, queueId, minute) ?? []
    open += ((sum as number | null) ?? 0) - ((cut as number | null) ?? 0)
    if (cut === null || cut === 0) continue
    for (const state of openStates) {
      const ofState = `select count(*) from items
        where queue_id = ? and letter_state = ? and died_at >= ? and died_at < ?`
      open += database.array(ofState, queueId, listedCodes[state], since, end)?.[0] as number
    }
  }
  return open
}

const actualCells = `select group_id, letter_state as state, letter_redrives as redrives, count(*) as n from items
  where group_id is not null group by group_id, letter_state, letter_redrives`
/** Rounded down, also before 1970. */
const minuteSql = `(died_at - (died_at % ${usPerMinute} + ${usPerMinute}) % ${usPerMinute}) / ${usPerMinute}`
const actualMinutes = `select queue_id, ${minuteSql} as minute, count(*) as n from items
  where letter_state in (${openCodes}) group by 1, 2`

/** One difference for each queue in which a count is wrong: what was counted where it is, and what is there. */
export function verifyLetters(database: Database): QueueDifference[] {
  const cells = compare(
    database.all('select queue_id, group_id, state, redrives, n from letter_counts'),
    database.all(`select g.queue_id, a.* from (${actualCells}) a join groups g on g.id = a.group_id`),
    (row) => `${row.group_id}/${row.state}/${row.redrives}`,
  )
  const minutes = compare(
    database.all('select queue_id, minute, n from open_minutes'),
    database.all(actualMinutes),
    (row) => `${row.queue_id}/${row.minute}`,
  )
  const names = queueNames(database)
  const differences = (found: typeof cells, count: 'letters' | 'open-minutes'): QueueDifference[] =>
    [...found].map(([queueId, sums]) => ({ queue: names.get(queueId) ?? '', partition: -1, count, ...sums }))
  return [...differences(cells, 'letters'), ...differences(minutes, 'open-minutes')].sort((a, b) =>
    a.queue < b.queue ? -1 : a.queue > b.queue ? 1 : 0,
  )
}

function compare(
  counted: readonly Row[],
  actual: readonly Row[],
  keyOf: (row: Row) => string,
): Map<number, { counted: number; actual: number }> {
  const found = new Map<number, { counted: number; actual: number }>()
  const there = new Map(actual.map((row) => [keyOf(row), row]))
  const differ = (queueId: unknown, was: number, is: number) => {
    if (was === is) return
    const sums = found.get(queueId as number) ?? { counted: 0, actual: 0 }
    found.set(queueId as number, { counted: sums.counted + was, actual: sums.actual + is })
  }
  for (const row of counted) {
    const key = keyOf(row)
    differ(row.queue_id, row.n as number, (there.get(key)?.n as number | undefined) ?? 0)
    there.delete(key)
  }
  for (const row of there.values()) differ(row.queue_id, 0, row.n as number)
  return found
}

/** Makes these counts anew from the rows. */
export function repairLetters(database: Database, queue: string): void {
  const id = database.get('select id from queues where name = ?', queue)?.id as number
  database.exec(`
    delete from letter_counts where queue_id = ${id};
    insert into letter_counts (queue_id, group_id, state, redrives, n)
      select queue_id, group_id, letter_state, letter_redrives, count(*) from items
      where queue_id = ${id} and group_id is not null group by group_id, letter_state, letter_redrives;
    delete from open_minutes where queue_id = ${id};
    insert into open_minutes (queue_id, minute, n)
      select queue_id, ${minuteSql}, count(*) from items
      where queue_id = ${id} and letter_state in (${openCodes}) group by 1, 2;`)
}
