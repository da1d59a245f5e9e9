/** What a campaign may be asked to do, and which letters that means. */
import type { Instant } from '../../core/instant.ts'
import { KnownError } from '../../errors.ts'
import type { ListedState } from '../../storage/contract/items.ts'
import type { LetterFilter } from '../../storage/contract/letters.ts'
import { letterUuidOf } from '../letter-id.ts'
import type { CampaignChanges, CampaignSpec } from '../letters.ts'
import { namedLettersMax } from '../parts.ts'

export const campaignBounds = {
  nameMax: 200,
  canaryMax: 1_000_000,
  rateMax: 1_000_000,
  /** 7 days. */
  rampUsMax: 7 * 24 * 3_600 * 1_000_000,
  haltMinMax: 1_000_000,
} as const

/** The spec as it will be kept, or BAD_REQUEST with what is wrong. */
export function checkSpec(spec: CampaignSpec): CampaignSpec {
  const { canaryMax, nameMax } = campaignBounds
  const name = spec.name.trim()
  if (name === '') throw refused('a campaign needs a name')
  if (name.length > nameMax) throw refused(`the name has ${name.length} characters; ${nameMax} at most`)
  if (spec.action !== 'redrive' && spec.action !== 'discard') throw refused('action is redrive or discard')
  checkTexts(spec, 'the campaign')
  whole('canaryCount', spec.canaryCount, 0, canaryMax)
  checkChanges(spec)
  checkRamp(spec)
  if ('letterIds' in spec.selection) checkIds(spec.selection.letterIds)
  // What is given up has no outcome to wait for, and goes nowhere.
  const canaryCount = spec.action === 'discard' ? 0 : spec.canaryCount
  const target = spec.action === 'discard' ? null : spec.target
  return { ...spec, name, canaryCount, target }
}

export function checkChanges({ ratePerSecond, rampUs, haltRatio, haltMin }: CampaignChanges): void {
  const { rateMax, rampUsMax, haltMinMax } = campaignBounds
  if (rampUs !== undefined) whole('rampUs', rampUs, 0, rampUsMax)
  if (haltMin !== undefined) whole('haltMin', haltMin, 0, haltMinMax)
  if (ratePerSecond !== undefined) between('ratePerSecond', ratePerSecond, 0, rateMax)
  if (haltRatio !== undefined) between('haltRatio', haltRatio, 0, 1)
}

/** Who gives one means to be careful: without a rate it would all go at once. */
export function checkRamp({ rampUs, ratePerSecond }: Pick<CampaignSpec, 'rampUs' | 'ratePerSecond'>): void {
  if (rampUs > 0 && ratePerSecond === 0) throw refused('a ramp has no meaning without a rate per second')
}

export function checkReason(reason: string): string {
  const text = reason.trim()
  if (text === '') throw refused('a campaign needs a reason')
  checkTexts(text, 'the reason')
  return text
}

/**
 * The letters that a filter means: without states, those that can be sent, or given up. `arrivedUntil`: nothing that
 * the store gets later comes in, however long the freezing takes and whenever it is said to have died.
 */
export function selectedBy(
  spec: Pick<CampaignSpec, 'action' | 'isDeadAllowed'>,
  filter: LetterFilter,
  arrivedUntil?: Instant,
): LetterFilter {
  const states = filter.states ?? openStates(spec)
  return { ...filter, states, ...(arrivedUntil !== undefined && { arrivedUntil }) }
}

function openStates({
  action,
  isDeadAllowed,
}: Pick<CampaignSpec, 'action' | 'isDeadAllowed'>): readonly ListedState[] {
  return action === 'discard' || isDeadAllowed ? ['waiting', 'scheduled', 'dead'] : ['waiting', 'scheduled']
}

function checkIds(ids: readonly string[]): void {
  if (ids.length === 0) throw refused('no letters are named')
  if (ids.length > namedLettersMax) {
    throw refused(`${ids.length} letters are named; ${namedLettersMax} at most: use a filter for more`)
  }
  const odd = ids.find((id) => letterUuidOf(id) === undefined)
  if (odd !== undefined) throw refused(`${JSON.stringify(odd.slice(0, 50))} is not the id of a letter`)
}

function whole(field: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw refused(`${field} is ${value}; it must be a whole number from ${min} to ${max}`)
}

function between(field: string, value: number, min: number, max: number): void {
  if (Number.isFinite(value) && value >= min && value <= max) return
  throw refused(`${field} is ${value}; it must be from ${min} to ${max}`)
}

/** Wherever they stand: the document is kept whole, and PostgreSQL keeps no NUL. */
function checkTexts(value: unknown, where: string): void {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw refused(`${where} contains a NUL character`)
    if (!value.isWellFormed()) throw refused(`${where} contains an unpaired surrogate`)
  } else if (value instanceof Uint8Array) return
  else if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) checkTexts(each, where)
  }
}

function refused(sentence: string): KnownError {
  return new KnownError('BAD_REQUEST', sentence)
}
