import { type Static, Type } from 'typebox'
import { formatDuration } from '../../../core/duration.ts'
import { campaignBounds } from '../../../letters/campaigns/spec.ts'
import type { CampaignChanges, CampaignSpec } from '../../../letters/letters.ts'
import { namedLettersMax } from '../../../letters/parts.ts'
import type { ApiContext } from '../../context.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { FilterSpec, readFilter } from '../filter/letter-filter.ts'
import { LetterId } from '../letters/letters.ts'
import { durationOf } from '../queues/queue-spec.ts'

const haltRatioDefault = 0.2
const haltMinDefault = 10

const selectFields = {
  action: Type.Enum(['redrive', 'discard']),
  ids: Type.Optional(
    Type.Array(LetterId, {
      minItems: 1,
      description: `These letters, at most ${namedLettersMax}. Or filter.`,
    }),
  ),
  filter: Type.Optional(FilterSpec),
  all: Type.Optional(
    Type.Boolean({
      description:
        'Every letter of every dead queue: said with this, and not with a filter that has no condition. Default false.',
    }),
  ),
  target: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description:
        'The queue to send to, instead of where each came from. Never one that takes dead letters.',
    }),
  ),
  include_dead: Type.Optional(
    Type.Boolean({ description: 'Also what is DEAD. Default false: such letters are skipped.' }),
  ),
}

export const PreviewSpec = Type.Object(selectFields, { additionalProperties: false })

/** What may be changed later, too. */
const paceFields = {
  rate_per_second: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: campaignBounds.rateMax,
      description: 'At most; 0, as it is unless told: as fast as it goes.',
    }),
  ),
  ramp: Type.Optional(
    Type.String({
      maxLength: 32,
      description: 'The rate grows to that over this time; 0s unless told.',
      examples: ['5m'],
    }),
  ),
  halt_ratio: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description: `Halts by itself when more than this part failed again or is unknown. ${haltRatioDefault} unless told; 1: never.`,
    }),
  ),
  halt_min: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: campaignBounds.haltMinMax,
      description: `Not before so many have ended; ${haltMinDefault} unless told.`,
    }),
  ),
}

export const CampaignChangesSpec = Type.Object(
  {
    ...paceFields,
    reason: Type.Optional(Type.String({ maxLength: 1_000, description: 'Why; kept in the audit log.' })),
  },
  {
    additionalProperties: false,
    description: 'What is left out stays as it is. A ramp that is given begins now.',
  },
)

export const NewCampaignSpec = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: campaignBounds.nameMax,
      pattern: '\\S',
      description: 'For people.',
    }),
    reason: Type.String({
      minLength: 1,
      maxLength: 1_000,
      pattern: '\\S',
      description: 'Why; kept in the audit log.',
    }),
    ...selectFields,
    canary_count: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: campaignBounds.canaryMax,
        description: 'So many are sent first; the rest follows when they ended well. Default 0: none.',
      }),
    ),
    ...paceFields,
  },
  { additionalProperties: false },
)

type Given = Static<typeof PreviewSpec> &
  Partial<Omit<Static<typeof NewCampaignSpec>, keyof Static<typeof PreviewSpec>>>

export async function readCampaignSpec(given: Given, context: ApiContext): Promise<CampaignSpec> {
  const { ids, action, target, all = false } = given
  const filter = given.filter ?? (all && ids === undefined ? {} : undefined)
  if ((ids === undefined) === (filter === undefined)) {
    throw new InvalidRequest([{ field: 'body', message: 'needs ids or filter or all, and not both' }])
  }
  // An empty variable in somebody's script must not send, or give up, everything.
  const hasCondition = filter !== undefined && Object.keys(filter).length > 0
  if (all && (ids !== undefined || hasCondition)) {
    throw new InvalidRequest([{ field: 'body.all', message: 'has no meaning with ids or a condition' }])
  }
  if (filter !== undefined && !hasCondition && !all) {
    const message = 'has no condition; all: true chooses every letter of every dead queue'
    throw new InvalidRequest([{ field: 'body.filter', message }])
  }
  if (action === 'discard' && target !== undefined) {
    throw new InvalidRequest([
      { field: 'body.target', message: 'has no meaning where letters are discarded' },
    ])
  }
  const selection =
    filter === undefined
      ? { letterIds: namedIds(ids ?? []) }
      : { filter: await readFilter(filter, 'body.filter', context.storage) }
  return {
    // A preview has none, and nobody will see this one.
    name: given.name?.trim() ?? 'preview',
    action,
    selection,
    target: target ?? null,
    isDeadAllowed: given.include_dead ?? false,
    canaryCount: given.canary_count ?? 0,
    ratePerSecond: given.rate_per_second ?? 0,
    rampUs: given.ramp === undefined ? 0 : rampOf(given.ramp),
    haltRatio: given.halt_ratio ?? haltRatioDefault,
    haltMin: given.halt_min ?? haltMinDefault,
  }
}

export function readCampaignChanges(given: Static<typeof CampaignChangesSpec>): CampaignChanges {
  const { rate_per_second: ratePerSecond, ramp, halt_ratio: haltRatio, halt_min: haltMin } = given
  const changes = {
    ...(ratePerSecond !== undefined && { ratePerSecond }),
    ...(ramp !== undefined && { rampUs: rampOf(ramp) }),
    ...(haltRatio !== undefined && { haltRatio }),
    ...(haltMin !== undefined && { haltMin }),
  }
  if (Object.keys(changes).length > 0) return changes
  throw new InvalidRequest([
    { field: 'body', message: 'changes nothing: give rate_per_second, ramp, halt_ratio or halt_min' },
  ])
}

function namedIds(ids: readonly string[]): readonly string[] {
  if (ids.length <= namedLettersMax) return ids
  const message = `has ${ids.length} ids; ${namedLettersMax} are allowed. Choose more with a filter`
  throw new InvalidRequest([{ field: 'body.ids', message }])
}

function rampOf(text: string): number {
  const rampUs = durationOf('ramp', text, 0)
  if (rampUs <= campaignBounds.rampUsMax) return rampUs
  throw new InvalidRequest([
    { field: 'body.ramp', message: `is longer than ${formatDuration(campaignBounds.rampUsMax)}` },
  ])
}
