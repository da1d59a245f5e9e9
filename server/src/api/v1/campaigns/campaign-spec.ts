/** Campaigns in requests. */
import { type Static, Type } from 'typebox'
import { formatDuration } from '../../../core/time/duration.ts'
import { campaignBounds } from '../../../letters/campaigns/spec.ts'
import type { CampaignChanges, CampaignSpec } from '../../../letters/letters.ts'
import { namedLettersMax } from '../../../letters/parts.ts'
import type { ApiContext } from '../../context.ts'
import { component, exactlyOneOf } from '../../http/openapi/annotations.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { FilterSpec } from '../filter/filter-fields.ts'
import { readFilter } from '../filter/read-filter.ts'
import { duration, parseDurationField } from '../values/duration.ts'
import { Reason, RequiredReason } from '../values/reason.ts'
import { ExpectedCount, LetterId, queueName } from '../values/schemas.ts'

const haltRatioDefault = 0.2
const haltMinDefault = 10

const selectionFields = {
  action: Type.Enum(['redrive', 'discard'], { description: 'What happens to the letters.' }),
  ids: Type.Optional(
    Type.Array(LetterId, {
      minItems: 1,
      description: `The letters, at most ${namedLettersMax}. Give one of ids, filter and all.`,
    }),
  ),
  filter: Type.Optional(FilterSpec),
  all: Type.Optional(
    Type.Boolean({
      description:
        'Selects all letters of all dead queues. A filter without conditions is refused. Default false.',
    }),
  ),
  target: Type.Optional(
    queueName('The queue to send to instead of the origin of each letter. A dead queue is refused.'),
  ),
  include_dead: Type.Optional(
    Type.Boolean({ description: 'Also redrives DEAD letters. Default false: they are skipped.' }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: campaignBounds.countMax,
      description:
        'Takes only the first letters: those that died first, or the first ids. Default: all of them.',
    }),
  ),
}

export const PreviewSpec = component(
  'CampaignPreviewSpec',
  exactlyOneOf(
    ['ids', 'filter', 'all'],
    Type.Object(
      {
        ...selectionFields,
        count_exactly: Type.Optional(
          Type.Boolean({
            description:
              'Counts all letters, however long it takes. Default false: a search stops after a second, and is_exact ' +
              'tells whether it was finished.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ),
)

/** Fields that can change while a campaign runs. */
const paceFields = {
  rate_per_second: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: campaignBounds.rateMax,
      description: 'The highest number of letters per second. Default 0: no limit.',
    }),
  ),
  ramp: Type.Optional(duration('The time in which the rate grows to its limit. Default 0s.')),
  halt_ratio: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description:
        'The campaign halts automatically if more than this part of its letters failed again or has an unknown ' +
        `outcome. Default ${haltRatioDefault}; 1: never.`,
    }),
  ),
  halt_min: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: campaignBounds.haltMinMax,
      description: `The campaign does not halt before this number of letters has ended. Default ${haltMinDefault}.`,
    }),
  ),
}

export const CampaignChangesSpec = component(
  'CampaignChanges',
  Type.Object(
    { ...paceFields, reason: Reason },
    { additionalProperties: false, description: 'Omitted fields keep their value. A new ramp starts now.' },
  ),
)

export const NewCampaignSpec = component(
  'NewCampaign',
  exactlyOneOf(
    ['ids', 'filter', 'all'],
    Type.Object(
      {
        name: Type.String({
          minLength: 1,
          maxLength: campaignBounds.nameMax,
          pattern: '\\S',
          description: 'A name for people.',
        }),
        reason: RequiredReason,
        ...selectionFields,
        canary_count: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: campaignBounds.canaryMax,
            description:
              'Sends this number of letters first, and the others only if these succeed. A discard campaign pauses ' +
              'after this number of letters until it is resumed. Default 0.',
          }),
        ),
        expected_count: ExpectedCount,
        ...paceFields,
      },
      { additionalProperties: false },
    ),
  ),
)

type Given = Omit<Static<typeof PreviewSpec>, 'count_exactly'> &
  Partial<Omit<Static<typeof NewCampaignSpec>, keyof Static<typeof PreviewSpec>>>

export async function readCampaignSpec(given: Given, context: ApiContext): Promise<CampaignSpec> {
  const { action, target } = given
  if (action === 'discard' && target !== undefined)
    throw createFault('body.target', 'cannot be combined with discard')
  return {
    // A preview needs no name. The name given here is never shown.
    name: given.name?.trim() ?? 'preview',
    action,
    selection: await readSelection(given, context),
    target: target ?? null,
    isDeadAllowed: given.include_dead ?? false,
    canaryCount: given.canary_count ?? 0,
    ratePerSecond: given.rate_per_second ?? 0,
    rampUs: given.ramp === undefined ? 0 : parseRamp(given.ramp),
    haltRatio: given.halt_ratio ?? haltRatioDefault,
    haltMin: given.halt_min ?? haltMinDefault,
    limit: given.limit ?? null,
    expectedCount: given.expected_count ?? null,
  }
}

async function readSelection(
  { ids, filter, all = false }: Given,
  { storage }: ApiContext,
): Promise<CampaignSpec['selection']> {
  const hasCondition = filter !== undefined && Object.keys(filter).length > 0
  if (all && (ids !== undefined || hasCondition)) {
    throw createFault('body.all', 'cannot be combined with ids or with conditions')
  }
  if (ids !== undefined && filter !== undefined)
    throw createFault('body', 'has ids and filter; give one of them')
  if (ids !== undefined) return { letterIds: checkIdCount(ids) }
  if (filter === undefined && !all) throw createFault('body', 'needs ids, filter or all')
  // An empty variable in a script must not select all letters.
  if (!hasCondition && !all) {
    throw createFault(
      'body.filter',
      'has no condition; set all to true to select all letters of all dead queues',
    )
  }
  return { filter: await readFilter(filter ?? {}, 'body.filter', storage) }
}

export function readCampaignChanges(given: Static<typeof CampaignChangesSpec>): CampaignChanges {
  const { rate_per_second: ratePerSecond, ramp, halt_ratio: haltRatio, halt_min: haltMin } = given
  const changes = {
    ...(ratePerSecond !== undefined && { ratePerSecond }),
    ...(ramp !== undefined && { rampUs: parseRamp(ramp) }),
    ...(haltRatio !== undefined && { haltRatio }),
    ...(haltMin !== undefined && { haltMin }),
  }
  if (Object.keys(changes).length > 0) return changes
  throw createFault('body', 'changes nothing; give rate_per_second, ramp, halt_ratio or halt_min')
}

function checkIdCount(ids: readonly string[]): readonly string[] {
  if (ids.length <= namedLettersMax) return ids
  throw createFault(
    'body.ids',
    `has ${ids.length} ids; at most ${namedLettersMax} are allowed. Use a filter for more`,
  )
}

function parseRamp(text: string): number {
  const rampUs = parseDurationField('ramp', text, 0)
  if (rampUs <= campaignBounds.rampUsMax) return rampUs
  throw createFault('body.ramp', `is ${text}; the maximum is ${formatDuration(campaignBounds.rampUsMax)}`)
}

function createFault(field: string, message: string): InvalidRequest {
  return new InvalidRequest([{ field, message }])
}
