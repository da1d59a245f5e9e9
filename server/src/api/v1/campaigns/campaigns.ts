/** Routes of campaigns. `events.ts` streams the changes of a campaign. */

import { Type } from 'typebox'
import type { CampaignSpec } from '../../../letters/letters.ts'
import { campaignLetterStates } from '../../../storage/contract/campaigns.ts'
import { createAttribution } from '../../http/attribution.ts'
import { abortOnDisconnect } from '../../http/connections/client-disconnect.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { describeSharedTopic, findSharedTopics, refuseSharedSample } from '../kafka/shared-topics.ts'
import { countByStatus, LetterSummary, StatusCounts, viewSummary } from '../letters/letter-view.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { formatTimeOrNull, nullableTime } from '../values/schemas.ts'
import {
  CampaignChangesSpec,
  NewCampaignSpec,
  PreviewSpec,
  readCampaignChanges,
  readCampaignSpec,
} from './campaign-spec.ts'
import { CampaignReport, CampaignView, viewCampaign, viewReport } from './campaign-view.ts'
import { findActionPermission, findCampaign, requireAction } from './find-campaign.ts'

const tag = 'campaigns'
export const CampaignParams = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 64, description: 'Id of the campaign.' }),
})

const CampaignLetterView = component(
  'CampaignLetter',
  Type.Object({
    position: Type.Integer({ description: 'Position in the frozen set.' }),
    id: Type.String({ description: 'Id of the letter.' }),
    state: Type.Enum([...campaignLetterStates], { description: 'State of the letter in this campaign.' }),
    refusal: Type.String({ description: 'Why the letter was skipped, as a code.' }),
    at: nullableTime('When the letter ended or was skipped. The letter shows when it was sent.'),
  }),
)

const actions = {
  pause: 'Pauses a campaign: it sends no letters until it is resumed. Redrives in progress continue.',
  resume: 'Resumes a campaign after a pause or a halt.',
  cancel: 'Cancels a campaign: letters that were not sent are skipped. Redrives in progress continue.',
} as const

export const campaignRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/campaigns/preview',
    operationId: 'previewCampaign',
    errors: ['TARGET_INVALID'],
    permission: 'campaign.read',
    summary: 'Shows what a campaign would do with its selection now. Changes nothing.',
    tag,
    dialect: v1,
    slowMs: 3_000,
    schema: {
      body: PreviewSpec,
      response: {
        200: Type.Object({
          is_exact: Type.Boolean({
            description:
              'False if the search ran out of time: there may be more letters. Set count_exactly to count all of them.',
          }),
          count: Type.Integer({ description: 'Number of selected letters, at most limit.' }),
          examined_count: Type.Integer({ description: 'Number of letters that were examined.' }),
          sample: Type.Array(LetterSummary, { description: 'Some of the selected letters.' }),
          targets: Type.Array(Type.Object({ queue: Type.String(), count: Type.Integer() }), {
            description: 'The target queues of the examined letters, with the number of letters for each.',
          }),
          statuses: StatusCounts,
          warnings: Type.Array(Type.String(), { description: 'Possible problems, for people.' }),
        }),
      },
    },
    handler: async ({ body: { count_exactly: isCountedExactly = false, ...body } }, reply, context) => {
      const spec = await readCampaignSpec(body, context)
      const letters = context.letters()
      const { signal } = abortOnDisconnect(reply)
      const preview = await letters.campaigns.preview(spec, { isCountedExactly, signal })
      const labelOf = await letters.labels(preview.sample)
      const shared = await findSharedTopics(
        spec.action === 'redrive' ? preview.sample.map(({ origin }) => origin) : [],
        spec.target,
        context,
      )
      return {
        is_exact: preview.isExact,
        count: preview.count,
        examined_count: preview.examinedCount,
        sample: preview.sample.map((item) => viewSummary(item, labelOf(item))),
        targets: preview.targets.map((target) => ({ ...target })),
        statuses: countByStatus(preview.byState),
        warnings: [...preview.warnings, ...shared.map(describeSharedTopic)],
      }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/campaigns',
    operationId: 'createCampaign',
    errors: ['TARGET_INVALID', 'SELECTION_CHANGED', 'KAFKA_TOPIC_SHARED', 'KAFKA_UNAVAILABLE'],
    permission: 'campaign.write',
    alsoNeeds: (request) => findActionPermission((request.body as Pick<CampaignSpec, 'action'>).action),
    summary: 'Starts a campaign: stores its set of letters, then redrives or discards them.',
    tag,
    dialect: v1,
    schema: { body: NewCampaignSpec, response: { 200: CampaignView } },
    handler: async (request, _reply, context) => {
      const spec = await readCampaignSpec(request.body, context)
      if (spec.action === 'redrive') await refuseSharedSample(spec, context)
      const campaign = await context
        .letters()
        .campaigns.create(spec, createAttribution(request, request.body.reason))
      return viewCampaign(campaign)
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/campaigns',
    operationId: 'listCampaigns',
    permission: 'campaign.read',
    summary: 'Lists campaigns, newest first.',
    tag,
    dialect: v1,
    schema: {
      querystring: pageQuery({}, { default: 50, max: 200 }),
      response: {
        200: Type.Object({
          campaigns: Type.Array(CampaignView, { description: 'The campaigns of this page.' }),
          next_cursor: NextCursor,
        }),
      },
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
    operationId: 'getCampaign',
    errors: ['CAMPAIGN_NOT_FOUND'],
    permission: 'campaign.read',
    summary: 'Returns the report of a campaign: its progress, and the causes of the letters that failed.',
    tag,
    dialect: v1,
    schema: { params: CampaignParams, response: { 200: CampaignReport } },
    handler: async ({ params: { id } }, _reply, context) => {
      const letters = context.letters()
      const campaign = await findCampaign(letters, id)
      return viewReport(campaign, await letters.campaigns.readCauses(campaign))
    },
  }),

  route({
    method: 'PATCH',
    path: '/api/v1/campaigns/{id}',
    operationId: 'updateCampaign',
    errors: ['CAMPAIGN_NOT_FOUND', 'CAMPAIGN_STATE', 'CAMPAIGN_CHANGED'],
    permission: 'campaign.write',
    summary: 'Changes the rate of a running campaign, or when it halts.',
    tag,
    dialect: v1,
    schema: { params: CampaignParams, body: CampaignChangesSpec, response: { 200: CampaignView } },
    handler: async (request, _reply, context) => {
      const letters = context.letters()
      const { id } = request.params
      const changes = readCampaignChanges(request.body)
      requireAction(request.caller, await findCampaign(letters, id))
      return viewCampaign(
        await letters.campaigns.adjust(id, changes, createAttribution(request, request.body.reason)),
      )
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/campaigns/{id}/letters',
    operationId: 'listCampaignLetters',
    errors: ['CAMPAIGN_NOT_FOUND'],
    permission: 'campaign.read',
    summary: 'Lists the letters of the frozen set in order, with the state of each.',
    tag,
    dialect: v1,
    schema: {
      params: CampaignParams,
      querystring: pageQuery(
        {
          state: Type.Optional(
            Type.Union(
              [Type.Enum([...campaignLetterStates]), Type.Array(Type.Enum([...campaignLetterStates]))],
              {
                description:
                  `Only letters in this state: ${campaignLetterStates.join(', ')}. With several values: any of ` +
                  'them.',
              },
            ),
          ),
        },
        { default: 100, max: 1_000 },
      ),
      response: {
        200: Type.Object({
          letters: Type.Array(CampaignLetterView, { description: 'The letters of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ params: { id }, query: { state, cursor, limit } }, _reply, context) => {
      const { campaigns } = context.letters()
      const [afterPosition] = cursor === undefined ? [] : readCursor(cursor, `campaign:${id}`, ['number'])
      await findCampaign({ campaigns }, id)
      const letters = await campaigns.listLetters(id, {
        ...(state !== undefined && { states: Array.isArray(state) ? state : [state] }),
        ...(afterPosition !== undefined && { afterPosition }),
        countMax: limit,
      })
      const last = letters.length < limit ? undefined : letters.at(-1)
      return {
        letters: letters.map((letter) => ({
          position: letter.position,
          id: letter.letterId,
          state: letter.state,
          refusal: letter.refusal,
          at: formatTimeOrNull(letter.at),
        })),
        next_cursor: last === undefined ? null : writeCursor(`campaign:${id}`, [last.position]),
      }
    },
  }),

  ...(Object.keys(actions) as (keyof typeof actions)[]).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/campaigns/{id}/${action}`,
      operationId: `${action}Campaign`,
      errors: ['CAMPAIGN_NOT_FOUND', 'CAMPAIGN_STATE', 'CAMPAIGN_CHANGED'],
      permission: 'campaign.write',
      summary: actions[action],
      tag,
      dialect: v1,
      isBodyOptional: true,
      schema: {
        params: CampaignParams,
        body: Type.Object({ reason: Reason }, { additionalProperties: false }),
        response: { 200: CampaignView },
      },
      handler: async (request, _reply, context) => {
        const { campaigns } = context.letters()
        const { id } = request.params
        const campaign = await findCampaign({ campaigns }, id)
        // Everyone with campaign.write can stop a campaign.
        if (action === 'resume') requireAction(request.caller, campaign)
        return viewCampaign(await campaigns[action](id, createAttribution(request, request.body.reason)))
      },
    }),
  ),
]
