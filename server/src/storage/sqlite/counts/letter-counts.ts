/**
 * The changes that a transaction makes to the counts of letters: by group, state and redrives; of open
 * letters by the minute of their death; of arrivals by group and hour; of the letters of campaigns. The
 * counts change with the rows, so that totals over millions of letters cost only the number of their groups.
 */

import { type ItemHead, toListedState } from '../../../core/items/item.ts'
import { type Instant, usPerSecond } from '../../../core/time/instant.ts'
import type { ListedState } from '../../contract/items.ts'
import { countRedrives } from '../../shared/letters/counted-filter.ts'
import type { Database } from '../connection/database.ts'
import { regressGroup } from '../groups/lifecycles.ts'
import { listedCodes } from '../items/rows.ts'

export const usPerMinute = 60 * usPerSecond
export const usPerHour = 60 * usPerMinute

/** The states of letters that wait for a decision. */
export const openStates: readonly ListedState[] = ['waiting', 'scheduled', 'dead']
const isOpen = Array.from({ length: 8 }, (_, code) => openStates.some((state) => listedCodes[state] === code))

type GroupDelta = { queueId: number; groupId: number; state: number; retryCount: number; by: number }
type MinuteDelta = { queueId: number; minute: number; by: number }
type HourDelta = { queueId: number; groupId: number; hour: number; by: number; lastAt: number }
type CampaignDelta = { campaignId: string; state: number; by: number }

export class LetterCountChanges {
  readonly #groups = new Map<number, GroupDelta>()
  readonly #minutes = new Map<number, MinuteDelta>()
  readonly #hours = new Map<number, HourDelta>()
  readonly #campaigns = new Map<string, CampaignDelta>()
  /** The last arrival in each group. Letters that moved to another group did not arrive. */
  readonly #arrived = new Map<number, Instant>()

  addLetter(queueId: number, groupId: number, item: ItemHead, by: 1 | -1): void {
    this.add(queueId, groupId, toListedState(item), item.retryCount, item.deadLetteredAt ?? 0, by)
  }

  /** `addLetter` for a letter of which only these columns were read. */
  add(
    queueId: number,
    groupId: number,
    state: ListedState,
    redrives: number,
    deadLetteredAt: Instant,
    by: 1 | -1,
  ): void {
    const counted = countRedrives(redrives)
    const code = listedCodes[state]
    const group = this.#groups.get(groupKey(groupId, code, counted))
    if (group === undefined) this.#addToGroup({ queueId, groupId, state: code, retryCount: counted, by })
    else group.by += by
    if (!isOpen[code]) return
    const minute = Math.floor(deadLetteredAt / usPerMinute)
    const before = this.#minutes.get(toTimeKey(queueId, minute))
    if (before === undefined) this.#addToMinute({ queueId, minute, by })
    else before.by += by
  }

  /** The group got a letter that died or failed again at `at`; -1: the letter moved to another group. */
  addArrival(queueId: number, groupId: number, at: Instant, by: 1 | -1 = 1): void {
    this.#addToHour({ queueId, groupId, hour: Math.floor(at / usPerHour), by, lastAt: at })
  }

  /** The group got a letter, which did not come from another group: it is no longer resolved. */
  noteArrival(groupId: number, at: Instant): void {
    this.#arrived.set(groupId, Math.max(at, this.#arrived.get(groupId) ?? at))
  }

  /** Ends the resolved state of the groups that got letters so far. */
  regressGroups(database: Database): void {
    for (const [groupId, at] of this.#arrived) regressGroup(database, groupId, at)
    this.#arrived.clear()
  }

  addToCampaign(campaignId: string, state: number, by: number): void {
    this.#addToCampaign({ campaignId, state, by })
  }

  merge(other: LetterCountChanges): void {
    for (const campaign of other.#campaigns.values()) this.#addToCampaign({ ...campaign })
    for (const group of other.#groups.values()) this.#addToGroup({ ...group })
    for (const minute of other.#minutes.values()) this.#addToMinute({ ...minute })
    for (const hour of other.#hours.values()) this.#addToHour({ ...hour })
    for (const [groupId, at] of other.#arrived) this.noteArrival(groupId, at)
  }

  dropQueue(queueId: number): void {
    for (const deltas of [this.#groups, this.#minutes, this.#hours] as const) {
      for (const [key, delta] of deltas) if (delta.queueId === queueId) deltas.delete(key)
    }
  }

  clear(): void {
    this.#groups.clear()
    this.#minutes.clear()
    this.#hours.clear()
    this.#campaigns.clear()
    this.#arrived.clear()
  }

  write(database: Database): void {
    this.regressGroups(database)
    for (const { queueId, groupId, state, retryCount, by } of this.#groups.values()) {
      if (by === 0) continue
      database.run(addToGroup, queueId, groupId, state, retryCount, by)
      if (by < 0) database.run(dropGroup, queueId, groupId, state, retryCount)
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

  #addToGroup(delta: GroupDelta): void {
    merge(this.#groups, groupKey(delta.groupId, delta.state, delta.retryCount), delta)
  }

  #addToMinute(delta: MinuteDelta): void {
    merge(this.#minutes, toTimeKey(delta.queueId, delta.minute), delta)
  }

  #addToHour(delta: HourDelta): void {
    const key = toTimeKey(delta.groupId, delta.hour)
    const before = this.#hours.get(key)
    if (before !== undefined) before.lastAt = Math.max(before.lastAt, delta.lastAt)
    merge(this.#hours, key, delta)
  }

  #addToCampaign(delta: CampaignDelta): void {
    merge(this.#campaigns, `${delta.state}/${delta.campaignId}`, delta)
  }
}

// Keys are numbers: to create a text for each letter would cost more than all else here.

function groupKey(groupId: number, state: number, redrives: number): number {
  return (groupId * 8 + state) * 16 + redrives
}

/** Minutes and hours fit in 32 bits, also before 1970. */
function toTimeKey(id: number, time: number): number {
  return id * 2 ** 32 + time + 2 ** 31
}

function merge<K, D extends { by: number }>(deltas: Map<K, D>, key: K, delta: D): void {
  const before = deltas.get(key)
  if (before === undefined) deltas.set(key, delta)
  else before.by += delta.by
}

const addToGroup = `insert into letter_counts (queue_id, group_id, state, redrives, n) values (?, ?, ?, ?, ?)
  on conflict (queue_id, group_id, state, redrives) do update set n = n + excluded.n`
const dropGroup =
  'delete from letter_counts where queue_id = ? and group_id = ? and state = ? and redrives = ? and n = 0'
const addToMinute = `insert into open_minutes (queue_id, minute, n) values (?, ?, ?)
  on conflict (queue_id, minute) do update set n = n + excluded.n`
const dropMinute = 'delete from open_minutes where queue_id = ? and minute = ? and n = 0'
const addToHour = `insert into group_hours (group_id, hour, n, last_at) values (?, ?, ?, ?)
  on conflict (group_id, hour) do update set n = n + excluded.n, last_at = max(last_at, excluded.last_at)`

const addToCampaign = `insert into campaign_counts (campaign_id, state, n) values (?, ?, ?)
  on conflict (campaign_id, state) do update set n = n + excluded.n`
