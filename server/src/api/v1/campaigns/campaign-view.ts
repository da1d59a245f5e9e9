/** Campaigns in answers. */
import { type Static, Type } from 'typebox'
import { formatDuration } from '../../../core/time/duration.ts'
import type { Campaign, CampaignCauses, CampaignSpec } from '../../../letters/letters.ts'
import { campaignLetterStates } from '../../../storage/contract/campaigns.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { FilterView, viewFilter } from '../filter/view-filter.ts'
import { durationView } from '../values/duration.ts'
import { formatTimeOrNull, nullable, nullableTime, time } from '../values/schemas.ts'

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

export const CampaignView = component(
  'Campaign',
  Type.Object({
    id: Type.String({ description: 'Id of the campaign.' }),
    namespace: nullable(Type.String(), 'The namespace of its letters; null: they can be in several.'),
    name: Type.String({ description: 'A name for people.' }),
    reason: Type.String({ description: 'Why the campaign was started.' }),
    actor: Type.String({ description: 'The person or program that started it.' }),
    action: Type.Enum(['redrive', 'discard'], { description: 'What happens to the letters.' }),
    state: Type.Enum([...campaignStates], {
      description:
        'freezing: its set is being stored; canary: the first letters are sent; running; done; paused by a person; ' +
        'halted automatically; cancelled permanently.',
    }),
    state_reason: Type.String({ description: 'Why the campaign is paused, halted or cancelled.' }),
    is_ended: Type.Boolean({ description: 'Whether the campaign and all its letters have ended.' }),
    ids: nullable(
      Type.Array(Type.String()),
      'The first of the given ids; GET …/letters lists all of them. Null if a filter was given.',
    ),
    filter: nullable(
      FilterView,
      'The given filter, with letter_class replaced by the queues that it had at that time. Null if ids were given.',
    ),
    target: nullable(Type.String(), 'The queue to send to; null: the origin of each letter.'),
    include_dead: Type.Boolean({ description: 'Whether DEAD letters are redriven.' }),
    canary_count: Type.Integer({ description: 'Letters that are sent first.' }),
    rate_per_second: Type.Number({ description: 'The highest number of letters per second; 0: no limit.' }),
    ramp: durationView('The time in which the rate grows to its limit.'),
    halt_ratio: Type.Number({ description: 'The part of failed or unknown letters above which it halts.' }),
    halt_min: Type.Integer({ description: 'Letters that must have ended before it can halt.' }),
    limit: nullable(Type.Integer(), 'Takes only this number of letters; null: all that are selected.'),
    expected_count: nullable(
      Type.Integer(),
      'The number of letters that the caller expected; null: any. The campaign halts before its first letter if the ' +
        'frozen set has another number.',
    ),
    created_at: time('When the campaign was created.'),
    updated_at: time('When the campaign last changed.'),
    started_at: nullableTime('When the first letter was sent.'),
    ended_at: nullableTime('When the last letter ended.'),
    size: nullable(Type.Integer(), 'Number of letters in the frozen set; null while it is being stored.'),
    counts: Type.Object(counts, {
      description:
        'The letters of the set by state. pending: not sent yet; sent: no outcome yet; resolved: processed; failed: ' +
        'died again; unknown: the outcome is unknown; skipped: not sent; discarded.',
    }),
    current_rate_per_second: Type.Number({
      description: 'Letters per second that were sent during the last seconds.',
    }),
    waits_for: Type.String({
      description:
        'What the campaign waits for, for people, with the target queues that nobody leases from. Empty if it does ' +
        'not wait for workers.',
    }),
  }),
)
export type CampaignView = Static<typeof CampaignView>

/** A campaign with the causes of its failed letters. */
export const CampaignReport = Type.Object({
  ...CampaignView.properties,
  causes: Type.Array(
    Type.Object({
      group_id: Type.Integer({ description: 'The group of the letters.' }),
      title: Type.String({ description: 'The title of the group.' }),
      error_code: Type.String({ description: 'The error code of the group.' }),
      error_class: Type.String({ description: 'The error class of the group.' }),
      message: Type.String({ description: 'The error message of one of the letters.' }),
      sample_id: Type.String({ description: 'The id of that letter.' }),
      count: Type.Integer({ description: 'Number of letters.' }),
    }),
    {
      description:
        'The causes of the letters that failed again or have an unknown outcome, the most frequent first, at most 20.',
    },
  ),
  causes_examined_count: Type.Integer({
    description: 'Number of letters whose causes were counted: the first 1,000 of them.',
  }),
})

export function viewReport(
  campaign: Campaign,
  { causes, examinedCount }: CampaignCauses,
): Static<typeof CampaignReport> {
  return {
    ...viewCampaign(campaign),
    causes: causes.map((cause) => ({
      group_id: cause.groupId,
      title: cause.title,
      error_code: cause.errorCode,
      error_class: cause.errorClass,
      message: cause.message,
      sample_id: cause.sampleId,
      count: cause.count,
    })),
    causes_examined_count: examinedCount,
  }
}

/** The request that created the campaign. */
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
    limit: spec.limit,
    expected_count: spec.expectedCount,
  }
}

export function viewCampaign(campaign: Campaign): CampaignView {
  return {
    id: campaign.id,
    namespace: campaign.namespace === '' ? null : campaign.namespace,
    ...viewSpec(campaign.spec),
    reason: campaign.reason,
    actor: campaign.actor,
    state: campaign.state,
    state_reason: campaign.stateReason,
    is_ended: isEnded(campaign),
    created_at: formatInstant(campaign.createdAt),
    updated_at: formatInstant(campaign.updatedAt),
    started_at: formatTimeOrNull(campaign.startedAt),
    ended_at: formatTimeOrNull(campaign.endedAt),
    size: campaign.size,
    counts: { ...campaign.counts },
    current_rate_per_second: campaign.rate,
    waits_for: campaign.waitsFor,
  }
}

/** A cancelled campaign ends when none of its redrives is in progress. */
export function isEnded({ endedAt }: Campaign): boolean {
  return endedAt !== null
}
