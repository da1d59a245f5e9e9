import { type Static, Type } from 'typebox'
import type { CampaignSpec, Letters } from '../../../letters/letters.ts'
import type { ApiContext } from '../../context.ts'
import { InvalidRequest } from '../../invalid-request.ts'
import { FilterSpec, readFilter } from '../letter-filter.ts'
import { LetterId } from '../letters/letters.ts'
import { durationOf } from '../queue-spec.ts'

export const campaignIdsMax = 100_000
const haltRatioDefault = 0.2
const haltMinDefault = 10

const selectFields = {
  action: Type.Enum(['redrive', 'discard']),
  ids: Type.Optional(
    Type.Array(LetterId, {
      minItems: 1,
      description: `These letters, at most ${campaignIdsMax}. Or filter.`,
    }),
  ),
  filter: Type.Optional(FilterSpec),
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

export const NewCampaignSpec = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200, pattern: '\\S', description: 'For people.' }),
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
        maximum: 10_000,
        description: 'So many are sent first; the rest follows when they ended well. Default 0: none.',
      }),
    ),
    rate_per_second: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1_000_000, description: 'At most; default 0: as fast as it goes.' }),
    ),
    ramp: Type.Optional(
      Type.String({
        maxLength: 32,
        description: 'The rate grows to that over this time; default 0s.',
        examples: ['5m'],
      }),
    ),
    halt_ratio: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: `Halts by itself when more than this part failed again or is unknown. Default ${haltRatioDefault}; 1: never.`,
      }),
    ),
    halt_min: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: `Not before so many have ended. Default ${haltMinDefault}.`,
      }),
    ),
  },
  { additionalProperties: false },
)

type Given = Static<typeof PreviewSpec> &
  Partial<Omit<Static<typeof NewCampaignSpec>, keyof Static<typeof PreviewSpec>>>

export async function readCampaignSpec(given: Given, context: ApiContext): Promise<CampaignSpec> {
  const { ids, filter, action, target } = given
  if ((ids === undefined) === (filter === undefined)) {
    throw new InvalidRequest([{ field: 'body', message: 'needs ids or filter, and not both' }])
  }
  if (action === 'discard' && target !== undefined) {
    throw new InvalidRequest([
      { field: 'body.target', message: 'has no meaning where letters are discarded' },
    ])
  }
  const selection =
    filter === undefined
      ? { letterIds: await letterIds(ids ?? [], context.letters()) }
      : { filter: await readFilter(filter, 'body.filter', context.storage) }
  return {
    name: given.name?.trim() ?? '',
    action,
    selection,
    target: target ?? null,
    isDeadAllowed: given.include_dead ?? false,
    canaryCount: given.canary_count ?? 0,
    ratePerSecond: given.rate_per_second ?? 0,
    rampUs: given.ramp === undefined ? 0 : durationOf('ramp', given.ramp, 0),
    haltRatio: given.halt_ratio ?? haltRatioDefault,
    haltMin: given.halt_min ?? haltMinDefault,
  }
}

/** Unknown ones stay as they were given: the campaign skips them when their turn comes, and says so. */
async function letterIds(ids: readonly string[], letters: Letters): Promise<string[]> {
  if (ids.length > campaignIdsMax) {
    const message = `has ${ids.length} ids; ${campaignIdsMax} are allowed. Choose more with a filter`
    throw new InvalidRequest([{ field: 'body.ids', message }])
  }
  const once = [...new Set(ids)]
  const found = await letters.resolveIds(once)
  return [...new Set(once.map((id, index) => found[index] ?? id))]
}
