/**
 * Campaigns: a document with a version, a frozen set of letters, and the state of each letter of the set.
 * letters/ decides what a campaign does; the store keeps the set and its counts exact.
 *
 * A letter of the set starts as `pending`. When the campaign reaches it, it becomes `sent` or `skipped`. A
 * `sent` letter becomes `resolved`, `failed` or `unknown` in the transaction in which its redrive ends; it
 * also becomes `unknown` if it is deleted. In a campaign that discards letters, a letter goes from `pending`
 * to `discarded`. The counts of the set by state change in the same transaction as its rows.
 */
import type { CampaignId, LetterId } from '../../core/ids/ids.ts'
import type { RedriveRecord } from '../../core/items/item.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { LetterCursor, LetterFilter } from './letters.ts'

export type CampaignCommand = PutCampaign | FreezeLetters | FreezeIds | SkipLetters

export type CampaignResults = {
  'put-campaign': { isPut: boolean }
  'freeze-letters': FreezeResult
  'freeze-ids': { added: number }
  'skip-letters': { skipped: number }
}

export interface CampaignStore {
  getCampaign(id: CampaignId): Promise<StoredCampaign | null>
  /** Newest first, by id. */
  listCampaigns(query: CampaignsQuery): Promise<readonly StoredCampaign[]>
  /** In the order of the set. */
  listCampaignLetters(query: CampaignLettersQuery): Promise<readonly CampaignLetter[]>
}

/**
 * Everything that letters/ knows of a campaign, as JSON. A store keeps it and does not look into it;
 * letters/campaigns/document.ts encodes and decodes it.
 */
export type CampaignDocument = Readonly<Record<string, unknown> & { formatVersion?: number }>

export type StoredCampaign = Readonly<{
  id: CampaignId
  /** Grows by 1 with each `put-campaign`. */
  version: number
  /** Also in the document. A column of its own, so that campaigns can be found by state. */
  state: string
  /** The namespace of all its letters; empty: it may have letters of several namespaces. */
  namespace: string
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

/**
 * Stores the campaign if its stored version is `version` (0: it does not exist yet), and adds 1 to the
 * version.
 */
export type PutCampaign = Readonly<{
  op: 'put-campaign'
  id: CampaignId
  version: number
  state: string
  /** Never changes: the store keeps that of the first version. Default: empty. */
  namespace?: string
  document: CampaignDocument
  /**
   * Reject the whole write with CAMPAIGN_CHANGED if the stored version is another one. So a step sends no
   * letter for a campaign that was paused in the meantime.
   */
  isRequired?: boolean
}>

/**
 * Adds the next matching letters to the set, in the order of their death, oldest first. Letters that are
 * already in the set are skipped. Looks at no more than `examinedMax` letters.
 *
 * Letters that arrived or were restored after the campaign was put are not added, however long freezing takes
 * and whatever time of death they report. The store numbers arrivals and campaigns, so no clock decides this.
 */
export type FreezeLetters = Readonly<{
  op: 'freeze-letters'
  campaignId: CampaignId
  filter: LetterFilter
  after?: LetterCursor
  countMax: number
  examinedMax: number
}>
/** `next`: where the next command continues; null if no more letters match. */
export type FreezeResult = Readonly<{ added: number; examinedCount: number; next: LetterCursor | null }>

/**
 * Adds letters to the set in the order given. An id that is no letter becomes `skipped` with the reason
 * `missing` when the campaign reaches it.
 */
export type FreezeIds = Readonly<{ op: 'freeze-ids'; campaignId: CampaignId; letterIds: readonly LetterId[] }>

/** Skips pending letters, lowest places first: the rest of the set of a campaign that was cancelled. */
export type SkipLetters = Readonly<{
  op: 'skip-letters'
  campaignId: CampaignId
  refusal: string
  countMax: number
}>

export type CampaignsQuery = Readonly<{
  states?: readonly string[]
  namespaces?: readonly string[]
  beforeId?: CampaignId
  countMax: number
}>

export type CampaignLettersQuery = Readonly<{
  campaignId: CampaignId
  states?: readonly CampaignLetterState[]
  afterPosition?: number
  countMax: number
}>

/** A letter's campaign, and its place in the frozen set. */
export type FrozenPosition = NonNullable<RedriveRecord['campaign']>

export type CampaignLetter = Readonly<{
  /** The position in the set, starting at 1. */
  position: number
  letterId: LetterId
  state: CampaignLetterState
  /** The reason why the letter was skipped; empty in every other state. */
  refusal: string
  /** When the redrive ended or the letter was skipped. The redrive record has the time when it was sent. */
  at: Instant | null
}>
