/**
 * The frozen set of a campaign, and the state of each letter in it.
 *
 * A row with the state `pending` at or below the campaign's `sent_until` stands for a sent letter
 * (send-progress.ts), so a step does not have to write every row.
 */
import type { Instant } from '../../../core/time/instant.ts'
import type {
  CampaignLetter,
  CampaignLetterState,
  CampaignLettersQuery,
  FreezeIds,
  FreezeLetters,
  FreezeResult,
  FrozenPosition,
  SkipLetters,
} from '../../contract/campaigns.ts'
import { toCampaignLetter, toLetterState, toStateCode } from '../../shared/letters/campaign-rows.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import { findRanges } from '../letters/index-ranges.ts'
import { findEntries } from '../letters/scan-letters.ts'
import type { Transaction } from '../transaction.ts'

/** The longest search of one freezing step: every other write waits for it. */
const freezeMsMax = 25

export function freezeLetters(transaction: Transaction, command: FreezeLetters): FreezeResult {
  const { database, countChanges } = transaction
  // The search uses the counts, so they must contain the changes of this transaction.
  countChanges.flush(database)
  const { filter, after, countMax, examinedMax } = command
  const campaign = database.getArray('select arrived_until from campaigns where id = ?', command.campaignId)
  const ranges = findRanges(database, {
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    ...(campaign !== undefined && { arrivedUntil: readNumber(campaign, 0) }),
  })
  const bounds = { countMax, examinedMax, msMax: freezeMsMax, ...(after !== undefined && { after }) }
  const page = findEntries(database, ranges, bounds)
  const letterIds = page.entries.map(({ rowid }) =>
    readText(database.getArray('select root_id from items where rowid = ?', rowid) ?? [], 0),
  )
  const added = addToSet(transaction, command.campaignId, letterIds)
  return { added, examinedCount: page.examinedCount, next: page.next }
}

export function freezeIds(transaction: Transaction, command: FreezeIds): { added: number } {
  return { added: addToSet(transaction, command.campaignId, command.letterIds) }
}

/** Adds the letters that are not in the set yet, and returns their number. */
function addToSet(
  { database, countChanges }: Transaction,
  campaignId: string,
  letterIds: readonly string[],
): number {
  const last = database.getArray(
    'select place from campaign_letters where campaign_id = ? order by place desc limit 1',
    campaignId,
  )
  const first = last === undefined ? 1 : readNumber(last, 0) + 1
  let place = first
  for (const letterId of letterIds) {
    place += database.run(
      `insert into campaign_letters (campaign_id, place, letter_id, state, why) values (?, ?, ?, ?, '')
       on conflict (campaign_id, letter_id) do nothing`,
      campaignId,
      place,
      letterId,
      toStateCode('pending'),
    )
  }
  countChanges.letters.addToCampaign(campaignId, toStateCode('pending'), place - first)
  return place - first
}

export function skipLetters(
  { database, countChanges }: Transaction,
  command: SkipLetters,
): { skipped: number } {
  const { campaignId, refusal, countMax } = command
  const skipped = database.run(
    `update campaign_letters set state = ?, why = ? where campaign_id = ? and place in (
       select place from campaign_letters where campaign_id = ? and state = ? and place > ? order by place limit +?)`,
    toStateCode('skipped'),
    refusal,
    campaignId,
    campaignId,
    toStateCode('pending'),
    readSentUntil(database, campaignId),
    countMax,
  )
  countChanges.letters.addToCampaign(campaignId, toStateCode('pending'), -skipped)
  countChanges.letters.addToCampaign(campaignId, toStateCode('skipped'), skipped)
  return { skipped }
}

/** The place up to which the campaign has sent its letters. */
export function readSentUntil(database: Database, campaignId: string): number {
  const row = database.getArray('select sent_until from campaigns where id = ?', campaignId)
  return row === undefined ? 0 : readNumber(row, 0)
}

/** The state of a letter of the set; undefined if the set has no such place. */
export function readLetterState(
  database: Database,
  { id, position }: FrozenPosition,
): CampaignLetterState | undefined {
  const row = database.getArray(
    'select state from campaign_letters where campaign_id = ? and place = ?',
    id,
    position,
  )
  if (row === undefined) return undefined
  return withSent(toLetterState(readNumber(row, 0)), position, readSentUntil(database, id))
}

function withSent(state: CampaignLetterState, place: number, sentUntil: number): CampaignLetterState {
  return state === 'pending' && place <= sentUntil ? 'sent' : state
}

/** Records the end of a redrive that the campaign sent. */
export function endCampaignLetter(
  transaction: Transaction,
  position: FrozenPosition,
  outcome: 'resolved' | 'failed' | 'unknown',
  now: Instant,
): void {
  moveLetter(transaction, position, 'sent', outcome, '', now)
}

const isPendingSql = `state = ${toStateCode('pending')}
  and place > coalesce((select sent_until from campaigns where id = campaign_id), 0)`
const isSentSql = `state in (${toStateCode('pending')}, ${toStateCode('sent')})`

/** Changes the state of a letter if it is still `from`. */
export function moveLetter(
  { database, countChanges }: Transaction,
  { id, position }: FrozenPosition,
  from: 'pending' | 'sent',
  to: CampaignLetterState,
  why: string,
  now: Instant | null,
): void {
  const sql = `update campaign_letters set state = ?, why = ?, at = ?
    where campaign_id = ? and place = ? and ${from === 'pending' ? isPendingSql : isSentSql}`
  if (database.run(sql, toStateCode(to), why, now, id, position) === 0) return
  countChanges.letters.addToCampaign(id, toStateCode(from), -1)
  countChanges.letters.addToCampaign(id, toStateCode(to), 1)
}

export function listCampaignLetters(database: Database, query: CampaignLettersQuery): CampaignLetter[] {
  const { campaignId, states, afterPosition = -1, countMax } = query
  const sentUntil = readSentUntil(database, campaignId)
  const select = (where: string, ...values: Bound[]): Row[] =>
    database.all(
      `select place, letter_id, state, why, at from campaign_letters where campaign_id = ? and ${where}
       order by place limit +?`,
      campaignId,
      ...values,
      countMax,
    )
  const readBetween = (state: CampaignLetterState, low: number, high: number): Row[] =>
    select('state = ? and place > ? and place <= ?', toStateCode(state), low, high)
  // Each state is read from its own part of the index, so that a million ended letters are not read.
  const selectState = (state: CampaignLetterState): Row[] => {
    if (state === 'pending')
      return readBetween(state, Math.max(afterPosition, sentUntil), Number.MAX_SAFE_INTEGER)
    const rows = readBetween(state, afterPosition, Number.MAX_SAFE_INTEGER)
    return state === 'sent' ? [...readBetween('pending', afterPosition, sentUntil), ...rows] : rows
  }
  const rows =
    states === undefined ? select('place > ?', afterPosition) : [...new Set(states)].flatMap(selectState)
  return rows
    .map(toCampaignLetter)
    .map((letter) => ({ ...letter, state: withSent(letter.state, letter.position, sentUntil) }))
    .sort((a, b) => a.position - b.position)
    .slice(0, countMax)
}
