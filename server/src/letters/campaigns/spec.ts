/** Validates the specification of a campaign and resolves which letters it selects. */
import { findTextFault } from '../../core/text/storable-text.ts'
import { KnownError } from '../../errors.ts'
import type { ListedState } from '../../storage/contract/items.ts'
import type { LetterFilter } from '../../storage/contract/letters.ts'
import { toLetterUuid } from '../letter-id.ts'
import type { CampaignChanges, CampaignSpec } from '../letters.ts'
import { namedLettersMax } from '../parts.ts'

export const campaignBounds = {
  nameMax: 200,
  canaryMax: 1_000_000,
  rateMax: 1_000_000,
  /** 7 days. */
  rampUsMax: 7 * 24 * 3_600 * 1_000_000,
  haltMinMax: 1_000_000,
  /** The upper bound of `limit` and `expectedCount`. */
  countMax: 1_000_000_000,
} as const

/** Returns the spec as it will be stored, or rejects with BAD_REQUEST. */
export function checkSpec(spec: CampaignSpec): CampaignSpec {
  const { canaryMax, nameMax, countMax } = campaignBounds
  const name = spec.name.trim()
  if (name === '') throw createSpecError('a campaign needs a name')
  if (name.length > nameMax)
    throw createSpecError(`the name has ${name.length} characters; the limit is ${nameMax}`)
  if (spec.action !== 'redrive' && spec.action !== 'discard')
    throw createSpecError(`action is ${JSON.stringify(spec.action)}; it must be "redrive" or "discard"`)
  checkTexts(spec, 'the campaign')
  checkInteger('canaryCount', spec.canaryCount, 0, canaryMax)
  if (spec.limit !== null) checkInteger('limit', spec.limit, 1, countMax)
  if (spec.expectedCount !== null) checkInteger('expectedCount', spec.expectedCount, 0, countMax)
  checkChanges(spec)
  checkRamp(spec)
  if ('letterIds' in spec.selection) checkIds(spec.selection.letterIds)
  // A discard has no target.
  const target = spec.action === 'discard' ? null : spec.target
  return { ...spec, name, target }
}

export function checkChanges({ ratePerSecond, rampUs, haltRatio, haltMin }: CampaignChanges): void {
  const { rateMax, rampUsMax, haltMinMax } = campaignBounds
  if (rampUs !== undefined) checkInteger('rampUs', rampUs, 0, rampUsMax)
  if (haltMin !== undefined) checkInteger('haltMin', haltMin, 0, haltMinMax)
  if (ratePerSecond !== undefined) checkRange('ratePerSecond', ratePerSecond, 0, rateMax)
  if (haltRatio !== undefined) checkRange('haltRatio', haltRatio, 0, 1)
}

/** A ramp without a rate is refused: the caller wants to be careful, but all letters would go immediately. */
export function checkRamp({ rampUs, ratePerSecond }: Pick<CampaignSpec, 'rampUs' | 'ratePerSecond'>): void {
  if (rampUs > 0 && ratePerSecond === 0)
    throw createSpecError('a ramp has no effect without a rate; set a rate per second, or omit the ramp')
}

export function checkReason(reason: string): string {
  const text = reason.trim()
  if (text === '') throw createSpecError('a campaign needs a reason')
  checkTexts(text, 'the reason')
  return text
}

/** Completes a filter: without states, it selects the letters that can be sent or discarded. */
export function completeFilter(
  spec: Pick<CampaignSpec, 'action' | 'isDeadAllowed'>,
  filter: LetterFilter,
): LetterFilter {
  return { ...filter, states: filter.states ?? openStates(spec) }
}

function openStates({
  action,
  isDeadAllowed,
}: Pick<CampaignSpec, 'action' | 'isDeadAllowed'>): readonly ListedState[] {
  return action === 'discard' || isDeadAllowed ? ['waiting', 'scheduled', 'dead'] : ['waiting', 'scheduled']
}

function checkIds(ids: readonly string[]): void {
  if (ids.length === 0) throw createSpecError('the selection names no letters')
  if (ids.length > namedLettersMax) {
    throw createSpecError(
      `the selection names ${ids.length} letters; the limit is ${namedLettersMax}. Use a filter`,
    )
  }
  const odd = ids.find((id) => toLetterUuid(id) === undefined)
  if (odd !== undefined) throw createSpecError(`${JSON.stringify(odd.slice(0, 50))} is not a letter id`)
}

function checkInteger(field: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw createSpecError(`${field} is ${value}; it must be a whole number from ${min} to ${max}`)
}

function checkRange(field: string, value: number, min: number, max: number): void {
  if (Number.isFinite(value) && value >= min && value <= max) return
  throw createSpecError(`${field} is ${value}; it must be from ${min} to ${max}`)
}

/** Checks every text of the document. */
function checkTexts(value: unknown, where: string): void {
  if (typeof value === 'string') {
    const fault = findTextFault(value)
    if (fault !== undefined) throw createSpecError(`${where} contains ${fault}`)
  } else if (value instanceof Uint8Array) return
  else if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) checkTexts(each, where)
  }
}

function createSpecError(sentence: string): KnownError {
  return new KnownError('BAD_REQUEST', sentence)
}
