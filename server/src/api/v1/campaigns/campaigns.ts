/** A redrive or discard of many, as something that lasts: it has a name, a reason, a frozen set and a report. */
import { Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import type { Campaign } from '../../../letters/letters.ts'
import { campaignLetterStates } from '../../../storage/contract/campaigns.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { LetterSummary, Time, timeOrNull, viewSummary } from '../letters/letter-view.ts'
import { StatusCounts, statusCounts } from '../letters/status-counts.ts'
import { createTrace } from '../queues/queue-admin.ts'
import { NextCursor, nullable, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import {
  CampaignChangesSpec,
  NewCampaignSpec,
  PreviewSpec,
  readCampaignChanges,
  readCampaignSpec,
} from './campaign-spec.ts'
import { CampaignView, viewCampaign } from './campaign-view.ts'

const tag = 'campaigns'
const params = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) })

const CampaignLetterView = Type.Object({
  place: Type.Integer({ description: 'In the frozen set.' }),
  id: Type.String(),
  state: Type.Enum([...campaignLetterStates]),
  why: Type.String({ description: 'Why it was skipped.' }),
  at: nullable(Time, 'When it ended or was skipped; when it was sent is told by the letter.'),
})

const actions = {
  pause: 'Sends nothing until resumed; what is under way goes on.',
  resume: 'Goes on after a pause or a halt.',
  cancel: 'Ends it: what was not sent is skipped, what is under way goes on to its end.',
} as const

export const campaignRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/campaigns/preview',
    permission: 'campaign.read',
    summary: 'What a campaign would do, by the selection that it would make now. Changes nothing.',
    tag,
    dialect: v1,
    slowMs: 3_000,
    schema: {
      body: PreviewSpec,
      response: {
        200: Type.Object({
          count: Type.Integer({ description: 'Letters that were selected.' }),
          is_exact: Type.Boolean({ description: 'False: found in the time there was; there may be more.' }),
          looked: Type.Integer(),
          sample: Type.Array(LetterSummary),
          targets: Type.Array(Type.Object({ queue: Type.String(), count: Type.Integer() }), {
            description: 'Where they would go, of those seen.',
          }),
          statuses: StatusCounts,
          warnings: Type.Array(Type.String()),
        }),
      },
    },
    handler: async ({ body }, _reply, context) => {
      const spec = await readCampaignSpec(body, context)
      const letters = context.letters()
      const preview = await letters.campaigns.preview(spec)
      const slugOf = await letters.slugs(preview.sample)
      return {
        count: preview.count,
        is_exact: preview.isExact,
        looked: preview.looked,
        sample: preview.sample.map((item) => viewSummary(item, slugOf(item))),
        targets: preview.targets.map((target) => ({ ...target })),
        statuses: statusCounts(preview.byState),
        warnings: [...preview.warnings],
      }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/campaigns',
    permission: 'campaign.write',
    alsoNeeds: (request) =>
      (request.body as { action?: unknown }).action === 'discard' ? 'letter.discard' : 'letter.redrive',
    summary: 'Starts a campaign: takes its set down, then sends or discards what is in it.',
    tag,
    dialect: v1,
    schema: { body: NewCampaignSpec, response: { 200: CampaignView } },
    handler: async (request, _reply, context) => {
      const spec = await readCampaignSpec(request.body, context)
      const campaign = await context
        .letters()
        .campaigns.create(spec, createTrace(request, request.body.reason))
      return viewCampaign(campaign)
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/campaigns',
    permission: 'campaign.read',
    summary: 'Campaigns, newest first.',
    tag,
    dialect: v1,
    schema: {
      querystring: pageQuery({}, { default: 50, max: 200 }),
      response: { 200: Type.Object({ campaigns: Type.Array(CampaignView), next_cursor: NextCursor }) },
    },
    handler: async ({ query: { cursor, limit } }, _reply, context) => {
      const [beforeId] = cursor === undefined ? [] : readCursor(cursor, 'campaigns', ['string'])
      const query = { ...(beforeId !== undefined && { beforeId }), countMax: limit }
      const campaigns = await context.letters().campaigns.list(query)
      const last = campaigns.length < limit ? undefined : campaigns.at(-1)
      return {
        campaigns: campaigns.map(viewCampaign),
        next_cursor: last === undefined ? null : writeCursor('campaigns', [last.id]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/campaigns/{id}',
    permission: 'campaign.read',
    summary: 'One campaign with its progress, and in the end its report.',
    tag,
    dialect: v1,
    schema: { params, response: { 200: CampaignView } },
    handler: async ({ params: { id } }, _reply, context) =>
      viewCampaign(found(id, await context.letters().campaigns.get(id))),
  }),

  route({
    method: 'PATCH',
    path: '/api/v1/campaigns/{id}',
    permission: 'campaign.write',
    summary: 'Makes a campaign that goes on faster or slower, or changes when it halts. Its set stays.',
    tag,
    dialect: v1,
    schema: { params, body: CampaignChangesSpec, response: { 200: CampaignView } },
    handler: async (request, _reply, context) => {
      const { campaigns } = context.letters()
      const { id } = request.params
      const changes = readCampaignChanges(request.body)
      found(id, await campaigns.get(id))
      return viewCampaign(await campaigns.adjust(id, changes, createTrace(request, request.body.reason)))
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/campaigns/{id}/letters',
    permission: 'campaign.read',
    summary: 'The frozen set in its order, and what became of each letter.',
    tag,
    dialect: v1,
    schema: {
      params,
      querystring: pageQuery(
        {
          state: Type.Optional(
            Type.Union(
              [Type.Enum([...campaignLetterStates]), Type.Array(Type.Enum([...campaignLetterStates]))],
              {
                description: `One of ${campaignLetterStates.join(', ')}. Several: any of them.`,
              },
            ),
          ),
        },
        { default: 100, max: 1_000 },
      ),
      response: { 200: Type.Object({ letters: Type.Array(CampaignLetterView), next_cursor: NextCursor }) },
    },
    handler: async ({ params: { id }, query: { state, cursor, limit } }, _reply, context) => {
      const { campaigns } = context.letters()
      const [afterPlace] = cursor === undefined ? [] : readCursor(cursor, `campaign:${id}`, ['number'])
      found(id, await campaigns.get(id))
      const letters = await campaigns.letters(id, {
        ...(state !== undefined && { states: Array.isArray(state) ? state : [state] }),
        ...(afterPlace !== undefined && { afterPlace }),
        countMax: limit,
      })
      const last = letters.length < limit ? undefined : letters.at(-1)
      return {
        letters: letters.map((letter) => ({
          place: letter.place,
          id: letter.letterId,
          state: letter.state,
          why: letter.why,
          at: timeOrNull(letter.at),
        })),
        next_cursor: last === undefined ? null : writeCursor(`campaign:${id}`, [last.place]),
      }
    },
  }),

  ...(Object.keys(actions) as (keyof typeof actions)[]).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/campaigns/{id}/${action}`,
      permission: 'campaign.write',
      summary: actions[action],
      tag,
      dialect: v1,
      schema: {
        params,
        body: Type.Object(
          {
            reason: Type.Optional(
              Type.String({ maxLength: 1_000, description: 'Why; kept in the audit log.' }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: CampaignView },
      },
      handler: async (request, _reply, context) => {
        const { campaigns } = context.letters()
        const { id } = request.params
        found(id, await campaigns.get(id))
        return viewCampaign(await campaigns[action](id, createTrace(request, request.body.reason)))
      },
    }),
  ),
]

export function found(id: string, campaign: Campaign | null): Campaign {
  if (campaign !== null) return campaign
  throw new KnownError('CAMPAIGN_NOT_FOUND', `there is no campaign ${JSON.stringify(id)}`)
}
