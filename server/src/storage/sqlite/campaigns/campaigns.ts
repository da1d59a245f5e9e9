import type { Instant } from '../../../core/instant.ts'
import { KnownError } from '../../../errors.ts'
import {
  type CampaignCounts,
  type CampaignDocument,
  type CampaignLetter,
  type CampaignLetterState,
  type CampaignLettersQuery,
  type CampaignsQuery,
  campaignLetterStates,
  type FreezeIds,
  type FreezeLetters,
  type FreezeResult,
  type PutCampaign,
  type SkipLetters,
  type StoredCampaign,
} from '../../contract/campaigns.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import { findLetters } from '../letters/list-letters.ts'
import type { Transaction } from '../transaction.ts'

type FrozenPosition = Readonly<{ id: string; place: number }>

/** A step that has to search: every other write waits for it. */
const freezeMsMax = 25

/** As stored: the place in the list. */
export const campaignStateCode = (state: CampaignLetterState): number => campaignLetterStates.indexOf(state)

export function putCampaign({ database }: Transaction, command: PutCampaign): { isPut: boolean } {
  const { id, version, state } = command
  const document = JSON.stringify(command.document)
  const put =
    version === 0
      ? database.run(
          'insert into campaigns (id, version, state, document) values (?, 1, ?, ?) on conflict do nothing',
          id,
          state,
          document,
        )
      : database.run(
          'update campaigns set version = version + 1, state = ?, document = ? where id = ? and version = ?',
          state,
          document,
          id,
          version,
        )
  if (put === 0 && command.isRequired) {
    throw new KnownError('CAMPAIGN_CHANGED', `campaign ${id} is not at version ${version} any more`)
  }
  return { isPut: put === 1 }
}

export function freezeLetters(transaction: Transaction, command: FreezeLetters): FreezeResult {
  const { database, tally } = transaction
  // What this transaction changed so far is looked at too, and found by its counts.
  tally.flush(database)
  const { filter, after, countMax, lookMax } = command
  const order = { order: 'diedAt', isDescending: false, ...(after === undefined ? {} : { after }) } as const
  const page = findLetters(database, { filter, ...order, countMax, lookMax }, freezeMsMax)
  const letterIds = page.places.map(
    ({ rowid }) => database.array('select root_id from items where rowid = ?', rowid)?.[0] as string,
  )
  const added = addToSet(transaction, command.campaignId, letterIds)
  return { added, looked: page.looked, next: page.next }
}

export function freezeIds(transaction: Transaction, command: FreezeIds): { added: number } {
  return { added: addToSet(transaction, command.campaignId, command.letterIds) }
}

function addToSet(
  { database, tally }: Transaction,
  campaignId: string,
  letterIds: readonly string[],
): number {
  const last = database.array(
    'select place from campaign_letters where campaign_id = ? order by place desc limit 1',
    campaignId,
  )
  const first = ((last?.[0] as number | undefined) ?? 0) + 1
  let place = first
  for (const letterId of letterIds) {
    place += database.run(
      `insert into campaign_letters (campaign_id, place, letter_id, state, why) values (?, ?, ?, ?, '')
       on conflict (campaign_id, letter_id) do nothing`,
      campaignId,
      place,
      letterId,
      campaignStateCode('pending'),
    )
  }
  tally.letters.addToCampaign(campaignId, campaignStateCode('pending'), place - first)
  return place - first
}

export function skipLetters({ database, tally }: Transaction, command: SkipLetters): { skipped: number } {
  const { campaignId, why, countMax } = command
  const skipped = database.run(
    `update campaign_letters set state = ?, why = ? where campaign_id = ? and place in (
       select place from campaign_letters where campaign_id = ? and state = ? and place > ? order by place limit +?)`,
    campaignStateCode('skipped'),
    why,
    campaignId,
    campaignId,
    campaignStateCode('pending'),
    sentUntil(database, campaignId),
    countMax,
  )
  tally.letters.addToCampaign(campaignId, campaignStateCode('pending'), -skipped)
  tally.letters.addToCampaign(campaignId, campaignStateCode('skipped'), skipped)
  return { skipped }
}

/** What has no state of its own was sent up to there, and is pending beyond (campaign-turns.ts). */
export function sentUntil(database: Database, campaignId: string): number {
  const row = database.array('select sent_until from campaigns where id = ?', campaignId)
  return (row?.[0] as number | undefined) ?? 0
}

/** What a letter of the set is; undefined when the set has no such place. */
export function campaignLetterState(database: Database, at: FrozenPosition): CampaignLetterState | undefined {
  const sql = 'select state from campaign_letters where campaign_id = ? and place = ?'
  const row = database.array(sql, at.id, at.place)
  return row && shownState(row[0] as number, at.place, sentUntil(database, at.id))
}

function shownState(code: number, place: number, until: number): CampaignLetterState {
  const state = campaignLetterStates[code] as CampaignLetterState
  return state === 'pending' && place <= until ? 'sent' : state
}

export function endCampaignLetter(
  transaction: Transaction,
  at: FrozenPosition,
  outcome: 'resolved' | 'failed' | 'unknown',
  now: Instant,
): void {
  moveLetter(transaction, at, 'sent', outcome, '', now)
}

const isPendingSql = `state = ${campaignStateCode('pending')}
  and place > coalesce((select sent_until from campaigns where id = campaign_id), 0)`
/** What was sent may be pending by its own row. */
const isSentSql = `state in (${campaignStateCode('pending')}, ${campaignStateCode('sent')})`

/** Only what still is what it was thought to be. */
export function moveLetter(
  { database, tally }: Transaction,
  { id, place }: FrozenPosition,
  from: 'pending' | 'sent',
  to: CampaignLetterState,
  why: string,
  now: Instant | null,
): void {
  const sql = `update campaign_letters set state = ?, why = ?, at = ?
    where campaign_id = ? and place = ? and ${from === 'pending' ? isPendingSql : isSentSql}`
  if (database.run(sql, campaignStateCode(to), why, now, id, place) === 0) return
  tally.letters.addToCampaign(id, campaignStateCode(from), -1)
  tally.letters.addToCampaign(id, campaignStateCode(to), 1)
}

export function getCampaign(database: Database, id: string): StoredCampaign | null {
  const row = database.get('select * from campaigns where id = ?', id)
  return row === undefined ? null : toStoredCampaign(database, row)
}

export function listCampaigns(database: Database, query: CampaignsQuery): StoredCampaign[] {
  const conditions: string[] = []
  const values: Bound[] = []
  if (query.states !== undefined) {
    conditions.push('state in (select value from json_each(?))')
    values.push(JSON.stringify(query.states))
  }
  if (query.beforeId !== undefined) {
    conditions.push('id < ?')
    values.push(query.beforeId)
  }
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  return database
    .all(`select * from campaigns ${where} order by id desc limit +?`, ...values, query.countMax)
    .map((row) => toStoredCampaign(database, row))
}

function toStoredCampaign(database: Database, row: Row): StoredCampaign {
  const counts = Object.fromEntries(campaignLetterStates.map((state) => [state, 0])) as Record<
    CampaignLetterState,
    number
  >
  const sql = 'select state, n from campaign_counts where campaign_id = ?'
  for (const [code, n] of database.arrays(sql, row.id as string)) {
    const state = campaignLetterStates[code as number]
    if (state !== undefined) counts[state] = n as number
  }
  return {
    id: row.id as string,
    version: row.version as number,
    state: row.state as string,
    document: JSON.parse(row.document as string) as CampaignDocument,
    counts: counts satisfies CampaignCounts,
  }
}

export function listCampaignLetters(database: Database, query: CampaignLettersQuery): CampaignLetter[] {
  const { campaignId, states, afterPlace, countMax } = query
  const after = afterPlace ?? -1
  const until = sentUntil(database, campaignId)
  const select = (where: string, ...values: Bound[]) =>
    database.arrays(
      `select place, letter_id, state, why, at from campaign_letters where campaign_id = ? and ${where} order by place limit +?`,
      campaignId,
      ...values,
      countMax,
    )
  // Each state from its own place in the index: a million that are done are not walked over.
  const ofState = (state: CampaignLetterState, low: number) =>
    select('state = ? and place > ?', campaignStateCode(state), low)
  const rows =
    states === undefined
      ? select('place > ?', after)
      : [...new Set(states)].flatMap((state) => {
          if (state === 'pending') return ofState('pending', Math.max(after, until))
          if (state !== 'sent') return ofState(state, after)
          const inTurn = select(
            'state = ? and place > ? and place <= ?',
            campaignStateCode('pending'),
            after,
            until,
          )
          return [...inTurn, ...ofState('sent', after)]
        })
  return rows
    .map(([place, letterId, state, why, at]) => ({
      place: place as number,
      letterId: letterId as string,
      state: shownState(state as number, place as number, until),
      why: why as string,
      at: at as number | null,
    }))
    .sort((a, b) => a.place - b.place)
    .slice(0, countMax)
}
