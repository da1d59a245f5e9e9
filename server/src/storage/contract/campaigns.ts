/**
 * How a store keeps campaigns: a document with a version, the frozen set of letters, and what became of each.
 * What a campaign does is decided in letters/; the store keeps it exact.
 *
 * A letter of the set is `pending`, then `sent` or `skipped` when its turn came; `sent` becomes `resolved`,
 * `failed` or `unknown` in the transaction in which its redrive ends; `unknown` also when the letter itself is
 * deleted meanwhile. Of a discard `discarded` is the end.
 * Counts of the set by state change with the rows.
 */
import type { Instant } from '../../core/instant.ts'
import type { LetterCursor, LetterFilter } from './letters.ts'

export type CampaignCommand = PutCampaign | FreezeLetters | FreezeIds | SkipLetters

export type CampaignResults = {
  'put-campaign': { isPut: boolean }
  'freeze-letters': FreezeResult
  'freeze-ids': { added: number }
  'skip-letters': { skipped: number }
}

export interface CampaignStore {
  getCampaign(id: string): Promise<StoredCampaign | null>
  /** Newest first by id. */
  listCampaigns(query: CampaignsQuery): Promise<readonly StoredCampaign[]>
  /** In the order of the set. */
  listCampaignLetters(query: CampaignLettersQuery): Promise<readonly CampaignLetter[]>
}

/** Everything that letters/ knows of a campaign, as JSON. `state` is also a column, to find what is to be done. */
export type CampaignDocument = Readonly<Record<string, unknown>>
export type StoredCampaign = Readonly<{
  id: string
  version: number
  state: string
  document: CampaignDocument
  counts: CampaignCounts
}>
export const campaignLetterStates = [
  'pending',
  'sent',
  'resolved',
  'failed',
  'unknown',
  'skipped',
  'discarded',
] as const
export type CampaignLetterState = (typeof campaignLetterStates)[number]
export type CampaignCounts = Readonly<Record<CampaignLetterState, number>>

/** Stored when the version is the one that is there (0: a new one); it is one more afterwards. */
export type PutCampaign = Readonly<{
  op: 'put-campaign'
  id: string
  version: number
  state: string
  document: CampaignDocument
  /**
   * Both backends: when it cannot be put because the version is another, the whole write is rejected with CAMPAIGN_CHANGED.
   * So a step sends nothing for a campaign that somebody paused a moment before.
   */
  isRequired?: boolean
}>

/**
 * Adds the next letters that match to the set, in the order of their death, oldest first. Letters that are
 * in it already are passed over. Looks at no more than `lookMax`.
 */
export type FreezeLetters = Readonly<{
  op: 'freeze-letters'
  campaignId: string
  filter: LetterFilter
  after?: LetterCursor
  countMax: number
  lookMax: number
}>
export type FreezeResult = Readonly<{ added: number; looked: number; next: LetterCursor | null }>
/** In the order given; ids that are no letters are `skipped` with `missing` when their turn comes. */
export type FreezeIds = Readonly<{ op: 'freeze-ids'; campaignId: string; letterIds: readonly string[] }>
/** Pending ones that will not be sent: a cancelled campaign ends its set. Lowest places first. */
export type SkipLetters = Readonly<{ op: 'skip-letters'; campaignId: string; why: string; countMax: number }>

export type CampaignsQuery = Readonly<{ states?: readonly string[]; beforeId?: string; countMax: number }>
export type CampaignLettersQuery = Readonly<{
  campaignId: string
  states?: readonly CampaignLetterState[]
  afterPlace?: number
  countMax: number
}>
/** `why`: of one that was skipped. `at`: when it ended or was skipped; when it was sent its redrive says. */
export type CampaignLetter = Readonly<{
  place: number
  letterId: string
  state: CampaignLetterState
  why: string
  at: Instant | null
}>
