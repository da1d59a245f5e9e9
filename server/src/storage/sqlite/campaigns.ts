import type { Instant } from '../../core/instant.ts'
import { KnownError } from '../../errors.ts'
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
  type Frozen,
  type PutCampaign,
  type SkipLetters,
  type StoredCampaign,
} from '../campaign-store.ts'
import type { Bound, Database, Row } from './database.ts'
import { findLetters } from './letter-list.ts'
import type { Transaction } from './transaction.ts'

type Place = Readonly<{ id: string; place: number }>

/** A step that has to search: every other write waits for it. */
const freezeMsMax = 25

/** As stored: the place in the list. */
const codeOf = (state: CampaignLetterState): number => campaignLetterStates.indexOf(state)

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

export function freezeLetters(transaction: Transaction, command: FreezeLetters): Frozen {
  const { database, tally } = transaction
  // What this transaction changed so far is looked at too, and found by its counts.
  tally.flush(database)
  const { filter, after, countMax, lookMax } = command
  const order = { order: 'diedAt', isDescending: false, ...(after === undefined ? {} : { after }) } as const
  const page = findLetters(database, { filter, ...order, countMax, lookMax }, freezeMsMax)
  const letterIds = page.rowids.map(
    (rowid) => database.array('select root_id from items where rowid = ?', rowid)?.[0] as string,
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
      codeOf('pending'),
    )
  }
  tally.letters.addToCampaign(campaignId, codeOf('pending'), place - first)
  return place - first
}

export function skipLetters({ database, tally }: Transaction, command: SkipLetters): { skipped: number } {
  const { campaignId, why, countMax } = command
  const skipped = database.run(
    `update campaign_letters set state = ?, why = ? where campaign_id = ? and place in (
       select place from campaign_letters where campaign_id = ? and state = ? order by place limit +?)`,
    codeOf('skipped'),
    why,
    campaignId,
    campaignId,
    codeOf('pending'),
    countMax,
  )
  tally.letters.addToCampaign(campaignId, codeOf('pending'), -skipped)
  tally.letters.addToCampaign(campaignId, codeOf('skipped'), skipped)
  return { skipped }
}

/** What a letter of the set is; undefined when the set has no such place. */
export function campaignLetterState(database: Database, at: Place): CampaignLetterState | undefined {
  const sql = 'select state from campaign_letters where campaign_id = ? and place = ?'
  const row = database.array(sql, at.id, at.place)
  return row && campaignLetterStates[row[0] as number]
}

/** Its turn came. */
export function takeTurn(
  transaction: Transaction,
  at: Place,
  to: 'sent' | 'skipped' | 'discarded',
  why: string,
  now: Instant,
): void {
  change(transaction, at, 'pending', to, why, to === 'sent' ? null : now)
}

export function endCampaignLetter(
  transaction: Transaction,
  at: Place,
  outcome: 'resolved' | 'failed' | 'unknown',
  now: Instant,
): void {
  change(transaction, at, 'sent', outcome, '', now)
}

function change(
  { database, tally }: Transaction,
  { id, place }: Place,
  from: CampaignLetterState,
  to: CampaignLetterState,
  why: string,
  now: Instant | null,
): void {
  const sql =
    'update campaign_letters set state = ?, why = ?, at = ? where campaign_id = ? and place = ? and state = ?'
  if (database.run(sql, codeOf(to), why, now, id, place, codeOf(from)) === 0) return
  tally.letters.addToCampaign(id, codeOf(from), -1)
  tally.letters.addToCampaign(id, codeOf(to), 1)
}

export function getCampaign(database: Database, id: string): StoredCampaign | null {
  const row = database.get('select * from campaigns where id = ?', id)
  return row === undefined ? null : campaignOf(database, row)
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
    .map((row) => campaignOf(database, row))
}

function campaignOf(database: Database, row: Row): StoredCampaign {
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
  const columns = 'place, letter_id, state, why, at'
  const after = afterPlace ?? -1
  const rows =
    states === undefined
      ? database.arrays(
          `select ${columns} from campaign_letters where campaign_id = ? and place > ? order by place limit +?`,
          campaignId,
          after,
          countMax,
        )
      : // Each state from its own place in the index: a million that are done are not walked over.
        [...new Set(states)].flatMap((state) =>
          database.arrays(
            `select ${columns} from campaign_letters where campaign_id = ? and state = ? and place > ?
             order by place limit +?`,
            campaignId,
            codeOf(state),
            after,
            countMax,
          ),
        )
  return rows
    .map(([place, letterId, state, why, at]) => ({
      place: place as number,
      letterId: letterId as string,
      state: campaignLetterStates[state as number] as CampaignLetterState,
      why: why as string,
      at: at as number | null,
    }))
    .sort((a, b) => a.place - b.place)
    .slice(0, countMax)
}
