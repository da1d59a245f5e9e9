/** The rows of campaigns and of their frozen sets, which have the same columns in both stores. */
import {
  type CampaignCounts,
  type CampaignDocument,
  type CampaignLetter,
  type CampaignLetterState,
  campaignLetterStates,
  type StoredCampaign,
} from '../../contract/campaigns.ts'
import { type DatabaseRow, readJson, readNumber, readNumberOrNull, readText } from '../rows/row-values.ts'

/** The state as it is stored: its index in `campaignLetterStates`. */
export function toStateCode(state: CampaignLetterState): number {
  return campaignLetterStates.indexOf(state)
}

export function toLetterState(code: number): CampaignLetterState {
  const state = campaignLetterStates[code]
  if (state === undefined) throw new Error(`${code} is not the code of a state of a campaign's letter`)
  return state
}

export function toStoredCampaign(row: DatabaseRow, counts: CampaignCounts): StoredCampaign {
  return {
    id: readText(row, 'id'),
    version: readNumber(row, 'version'),
    state: readText(row, 'state'),
    namespace: readText(row, 'namespace'),
    document: readJson<CampaignDocument>(row, 'document'),
    counts,
  }
}

/** `counts`: by state code. A missing state has no letters. */
export function toCampaignCounts(counts: ReadonlyMap<number, number>): CampaignCounts {
  const entries = campaignLetterStates.map((state, code) => [state, counts.get(code) ?? 0] as const)
  return Object.fromEntries(entries) as CampaignCounts
}

export function toCampaignLetter(row: DatabaseRow): CampaignLetter {
  return {
    position: readNumber(row, 'place'),
    letterId: readText(row, 'letter_id'),
    state: toLetterState(readNumber(row, 'state')),
    refusal: readText(row, 'why'),
    at: readNumberOrNull(row, 'at'),
  }
}
