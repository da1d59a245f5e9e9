/** Routes that take changes of letters back: restore discarded letters, and cancel redrives. */

import { type Static, Type } from 'typebox'
import type { UndoDone, UndoLimits } from '../../../letters/letters.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component, exactlyOneOf } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { findCampaign } from '../campaigns/find-campaign.ts'
import { v1 } from '../dialect.ts'
import { FilterSpec } from '../filter/filter-fields.ts'
import { readFilter } from '../filter/read-filter.ts'
import { RequiredReason } from '../values/reason.ts'
import { ExpectedCount } from '../values/schemas.ts'
import { changeEach, DoneView, Ids, resolveIds, viewDone } from './letter-results.ts'

/** A call that takes longer ends with is_complete false; its client may have a timeout of its own. */
const undoMsMax = 20_000

const selectionFields = {
  ids: Type.Optional(Ids),
  campaign_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'All letters that this campaign changed.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'Changes only the first letters.' }),
  ),
  expected_count: ExpectedCount,
  reason: Type.Optional(RequiredReason),
}
const RestoreSpec = component(
  'RestoreSpec',
  exactlyOneOf(
    ['ids', 'filter', 'campaign_id'],
    Type.Object({ ...selectionFields, filter: Type.Optional(FilterSpec) }, { additionalProperties: false }),
  ),
)
const CancelSpec = component(
  'CancelRedrivesSpec',
  exactlyOneOf(['ids', 'campaign_id'], Type.Object(selectionFields, { additionalProperties: false })),
)

const resultFields = {
  letters: Type.Array(DoneView, {
    description: 'With ids: the result of each letter. Otherwise the first letters that were not changed.',
  }),
  refused: Type.Integer({ description: 'Number of letters that were not changed.' }),
  is_complete: Type.Boolean({
    description: 'False if the call ran out of time before it changed all letters: repeat it.',
  }),
}

export const undoRoutes = [
  ...(['/api/v1/letters/restore', '/api/v1/archive/restore'] as const).map((path) =>
    route({
      method: 'POST',
      path,
      operationId: path.startsWith('/api/v1/archive') ? 'restoreArchivedLetters' : 'restoreLetters',
      errors: ['CAMPAIGN_NOT_FOUND', 'SELECTION_CHANGED'],
      permission: 'letter.restore',
      summary:
        'Restores discarded and archived letters: as DEAD if they were DEAD or have no redrives left, else as ' +
        'PENDING. Give one of ids, filter (discarded letters that are not archived) and campaign_id. Partial ' +
        'success: the answer has the letters that were not restored.',
      tag: path.startsWith('/api/v1/archive') ? 'archive' : 'letters',
      dialect: v1,
      slowMs: 2 * undoMsMax,
      schema: {
        body: RestoreSpec,
        response: {
          200: Type.Object({
            ...resultFields,
            restored: Type.Integer({ description: 'Number of letters that were restored.' }),
          }),
        },
      },
      handler: async (request, _reply, context) => {
        const { ids, filter, campaign_id: campaignId, reason, ...guards } = request.body
        checkOne({ ids, filter, campaign_id: campaignId })
        const letters = context.letters()
        const attribution = createAttribution(request, reason)
        if (ids !== undefined) {
          const done = await changeEach(await resolveIds({ ids, ...guards }, letters), (letterIds) =>
            letters.restore(letterIds, attribution),
          )
          const results = done.map(({ id, result }) =>
            viewDone(id, result?.isRestored ?? false, result?.refusal ?? null),
          )
          const restored = results.filter(({ is_done }) => is_done).length
          return { letters: results, restored, refused: results.length - restored, is_complete: true }
        }
        const selection =
          campaignId === undefined
            ? { filter: await readDiscardedFilter(filter ?? {}, context) }
            : { campaignId: (await findCampaign(letters, campaignId)).id }
        const done = await letters.restoreSelected(selection, readLimits(guards), attribution)
        return { ...viewUndo(done), restored: done.changed }
      },
    }),
  ),

  route({
    method: 'POST',
    path: '/api/v1/letters/cancel-redrive',
    operationId: 'cancelRedrives',
    errors: ['CAMPAIGN_NOT_FOUND', 'SELECTION_CHANGED'],
    permission: 'letter.redrive',
    summary:
      'Cancels redrives whose items no worker has leased yet: removes the items and makes the letters PENDING or ' +
      'DEAD as before. Give one of ids and campaign_id. Partial success: the answer has the letters whose redrives ' +
      'were not cancelled.',
    tag: 'letters',
    dialect: v1,
    slowMs: 2 * undoMsMax,
    schema: {
      body: CancelSpec,
      response: {
        200: Type.Object({
          ...resultFields,
          cancelled: Type.Integer({ description: 'Number of redrives that were cancelled.' }),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { ids, campaign_id: campaignId, reason, ...guards } = request.body
      checkOne({ ids, campaign_id: campaignId })
      const letters = context.letters()
      const attribution = createAttribution(request, reason)
      if (campaignId !== undefined) {
        const { id } = await findCampaign(letters, campaignId)
        const done = await letters.cancelCampaignRedrives(id, readLimits(guards), attribution)
        return { ...viewUndo(done), cancelled: done.changed }
      }
      const done = await changeEach(await resolveIds({ ids: ids ?? [], ...guards }, letters), (letterIds) =>
        letters.cancelRedrives(letterIds, attribution),
      )
      const results = done.map(({ id, result }) =>
        viewDone(id, result?.isCancelled ?? false, describeCancel(result?.refusal ?? null)),
      )
      const cancelled = results.filter(({ is_done }) => is_done).length
      return { letters: results, cancelled, refused: results.length - cancelled, is_complete: true }
    },
  }),
]

/** A worker has leased the item of the redrive, not the letter. */
function describeCancel(refusal: string | null): string | null {
  return refusal === 'leased' ? 'processing' : refusal
}

function readLimits({
  limit,
  expected_count,
}: Readonly<{ limit?: number; expected_count?: number }>): UndoLimits {
  const countMax = limit ?? Number.POSITIVE_INFINITY
  return { countMax, expectedCount: expected_count ?? null, msMax: undoMsMax }
}

async function readDiscardedFilter(filter: Static<typeof FilterSpec>, { storage }: ApiContext) {
  const read = await readFilter(filter, 'body.filter', storage)
  if (Object.keys(filter).length === 0) throw createFault('body.filter', 'has no condition')
  if (read.states?.some((state) => state !== 'discarded') === true)
    throw createFault('body.filter.status', 'can only be DISCARDED')
  return read
}

function viewUndo({ refusals, refused, isComplete }: UndoDone) {
  const letters = refusals.map(({ letterId, refusal }) => viewDone(letterId, false, describeCancel(refusal)))
  return { letters, refused, is_complete: isComplete }
}

function checkOne(given: Readonly<Record<string, unknown>>): void {
  const names = Object.keys(given)
  const count = names.filter((name) => given[name] !== undefined).length
  if (count !== 1) throw createFault('body', `needs exactly one of ${names.join(', ')}; it has ${count}`)
}

function createFault(field: string, message: string): InvalidRequest {
  return new InvalidRequest([{ field, message }])
}
