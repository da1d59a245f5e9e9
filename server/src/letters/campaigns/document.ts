/** A campaign as the store keeps it: JSON, so what is bytes in a filter is written as base64. */
import type { CampaignDocument, StoredCampaign } from '../../storage/contract/campaigns.ts'
import type { LetterFilter } from '../../storage/contract/letters.ts'
import type { Campaign, CampaignSpec } from '../letters.ts'
import { type CampaignFacts, measureRate } from './state-machine.ts'

/**
 * Of letters that are named one by one so many are kept in the document, which is written with every step;
 * all of them are in the frozen set.
 */
export const namedKept = 100

export function toDocument(facts: CampaignFacts): CampaignDocument {
  return { ...facts, spec: { ...facts.spec, selection: writeSelection(facts.spec.selection) } }
}

export function fromDocument(document: CampaignDocument): CampaignFacts {
  // Ours, written by `toDocument`.
  const facts = document as unknown as CampaignFacts
  return { ...facts, spec: specOf(facts.spec) }
}

/** The spec of a document, or of the audit row that tells of it. */
export function specOf(document: unknown): CampaignSpec {
  // Ours, written by `toDocument`.
  const spec = document as CampaignSpec
  return { ...spec, selection: readSelection(spec.selection) }
}

export function campaignOf(stored: StoredCampaign, now: number): Campaign {
  const facts = fromDocument(stored.document)
  const { frozenUntil, placeDone, pace, overlooked, recent, ...shown } = facts
  return { id: stored.id, ...shown, counts: stored.counts, rate: measureRate(facts, now) }
}

type Selection = CampaignSpec['selection']

function writeSelection(selection: Selection): unknown {
  if ('letterIds' in selection) return { letterIds: selection.letterIds.slice(0, namedKept) }
  const { key, ...rest } = selection.filter
  if (key === undefined) return selection
  return { filter: { ...rest, keyBase64: Buffer.from(key).toString('base64') } }
}

function readSelection(selection: Selection): Selection {
  if ('letterIds' in selection) return selection
  const { keyBase64, ...rest } = selection.filter as LetterFilter & { keyBase64?: string }
  if (keyBase64 === undefined) return selection
  return { filter: { ...rest, key: new Uint8Array(Buffer.from(keyBase64, 'base64')) } }
}
