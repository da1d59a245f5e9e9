import { type Static, Type } from 'typebox'
import { formatDuration } from '../../../core/duration.ts'
import type { Campaign, CampaignSpec } from '../../../letters/letters.ts'
import { campaignLetterStates } from '../../../storage/contract/campaigns.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { FilterView, viewFilter } from '../filter/letter-filter.ts'
import { Time, timeOrNull } from '../letters/letter-view.ts'
import { nullable } from '../values/cursor.ts'

const counts = Object.fromEntries(campaignLetterStates.map((state) => [state, Type.Integer()])) as Record<
  (typeof campaignLetterStates)[number],
  ReturnType<typeof Type.Integer>
>

export const campaignStates = [
  'freezing',
  'canary',
  'running',
  'paused',
  'halted',
  'cancelled',
  'done',
] as const

export const CampaignView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  reason: Type.String(),
  actor: Type.String(),
  action: Type.Enum(['redrive', 'discard']),
  state: Type.Enum([...campaignStates], {
    description:
      'freezing (the set is being taken down), canary, running, done; paused by a person, halted by itself, cancelled for good.',
  }),
  state_reason: Type.String({ description: 'Why it is paused, halted or cancelled.' }),
  is_ended: Type.Boolean({ description: 'Nothing will change any more.' }),
  ids: nullable(
    Type.Array(Type.String()),
    'The first of the ids that it was given; all of them are its letters. Null: it was given a filter.',
  ),
  filter: nullable(FilterView, 'What it was given; a class as the queues that it had then.'),
  target: nullable(Type.String()),
  include_dead: Type.Boolean(),
  canary_count: Type.Integer(),
  rate_per_second: Type.Number(),
  ramp: Type.String(),
  halt_ratio: Type.Number(),
  halt_min: Type.Integer(),
  created_at: Time,
  updated_at: Time,
  started_at: nullable(Time),
  ended_at: nullable(Time),
  size: nullable(Type.Integer(), 'Letters in the frozen set; null while it is being frozen.'),
  counts: Type.Object(counts, {
    description:
      'The set by what became of its letters. resolved: processed; failed: died again; unknown: nobody can tell.',
  }),
  rate: Type.Number({ description: 'Sent per second, over the last seconds.' }),
})
export type CampaignView = Static<typeof CampaignView>

/** What it was asked to do. */
export function viewSpec(spec: CampaignSpec) {
  const { selection } = spec
  return {
    name: spec.name,
    action: spec.action,
    ids: 'filter' in selection ? null : [...selection.letterIds],
    filter: 'filter' in selection ? viewFilter(selection.filter) : null,
    target: spec.target,
    include_dead: spec.isDeadAllowed,
    canary_count: spec.canaryCount,
    rate_per_second: spec.ratePerSecond,
    ramp: formatDuration(spec.rampUs),
    halt_ratio: spec.haltRatio,
    halt_min: spec.haltMin,
  }
}

export function viewCampaign(campaign: Campaign): CampaignView {
  return {
    id: campaign.id,
    ...viewSpec(campaign.spec),
    reason: campaign.reason,
    actor: campaign.actor,
    state: campaign.state,
    state_reason: campaign.stateReason,
    is_ended: isEnded(campaign),
    created_at: formatInstant(campaign.createdAt),
    updated_at: formatInstant(campaign.updatedAt),
    started_at: timeOrNull(campaign.startedAt),
    ended_at: timeOrNull(campaign.endedAt),
    size: campaign.size,
    counts: { ...campaign.counts },
    rate: campaign.rate,
  }
}

/** A cancelled one has its end when nothing of it is under way any more. */
export function isEnded({ endedAt }: Campaign): boolean {
  return endedAt !== null
}
