/** Routes by which a person merges groups and causes, and names them. */
import { Type } from 'typebox'
import { titleMax } from '../../../letters/grouping/group-actions.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { Reason } from '../values/reason.ts'
import { nullable } from '../values/schemas.ts'
import { CauseParams, CauseReport, GroupParams, GroupReport, showCause, showGroup } from './show.ts'

const mergedMax = 1_000

const TitleSpec = Type.Object(
  {
    title: nullable(
      Type.String({ maxLength: titleMax }),
      'The title to show from now on; null: the title that is learned from the letters.',
    ),
    reason: Reason,
  },
  { additionalProperties: false },
)

export const groupChangeRoutes = [
  route({
    method: 'PATCH',
    path: '/api/v1/groups/{id}',
    operationId: 'updateGroup',
    errors: ['GROUP_NOT_FOUND'],
    permission: 'group.write',
    summary: 'Pins the title of a group.',
    tag: 'groups',
    dialect: v1,
    schema: { params: GroupParams, body: TitleSpec, response: { 200: GroupReport } },
    handler: async (request, _reply, context) => {
      const { title, reason } = request.body
      const groupId = request.params.id
      await context.letters().pinTitle({ groupId }, title, createAttribution(request, reason))
      return showGroup(groupId, context)
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/groups/{id}/merge',
    operationId: 'mergeGroups',
    errors: ['GROUP_NOT_FOUND'],
    permission: 'group.write',
    summary:
      'Merges other groups of the same dead queue into this one, with all their letters and counts at once. ' +
      'Requests with their ids mean this group from then on.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: GroupParams,
      body: Type.Object(
        {
          group_ids: Type.Array(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), {
            minItems: 1,
            maxItems: mergedMax,
            description: 'The groups to merge into this one.',
          }),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: GroupReport },
    },
    handler: async (request, _reply, context) => {
      const { group_ids, reason } = request.body
      const attribution = createAttribution(request, reason)
      return showGroup(
        await context.letters().mergeGroups(request.params.id, group_ids, attribution),
        context,
      )
    },
  }),

  route({
    method: 'PATCH',
    path: '/api/v1/causes/{id}',
    operationId: 'updateCause',
    errors: ['CAUSE_NOT_FOUND'],
    permission: 'group.write',
    summary: 'Pins the title of all groups of a cause.',
    tag: 'groups',
    dialect: v1,
    schema: { params: CauseParams, body: TitleSpec, response: { 200: CauseReport } },
    handler: async (request, _reply, context) => {
      const { title, reason } = request.body
      const causeKey = request.params.id
      await context.letters().pinTitle({ causeKey }, title, createAttribution(request, reason))
      return showCause(causeKey, context)
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/causes/{id}/merge',
    operationId: 'mergeCauses',
    errors: ['CAUSE_NOT_FOUND'],
    permission: 'group.write',
    summary:
      'Merges other causes into this one, in all dead queues. The groups of each queue stay apart. Requests with ' +
      'their ids mean this cause from then on.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: CauseParams,
      body: Type.Object(
        {
          cause_ids: Type.Array(Type.String({ maxLength: 64 }), {
            minItems: 1,
            maxItems: mergedMax,
            description: 'The causes to merge into this one.',
          }),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: CauseReport },
    },
    handler: async (request, _reply, context) => {
      const { cause_ids, reason } = request.body
      const attribution = createAttribution(request, reason)
      return showCause(
        await context.letters().mergeCauses(request.params.id, cause_ids, attribution),
        context,
      )
    },
  }),
]
