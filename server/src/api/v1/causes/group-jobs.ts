/** Routes of background work on groups: grouping a dead queue again, and splits. */
import { type Static, Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import { titleMax } from '../../../letters/grouping/group-actions.ts'
import type { GroupJob } from '../../../letters/grouping/group-jobs.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { FilterSpec } from '../filter/filter-fields.ts'
import { readFilter } from '../filter/read-filter.ts'
import { FilterView, viewFilter } from '../filter/view-filter.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { nullable, time } from '../values/schemas.ts'
import { findQueue } from './find-queue.ts'
import { GroupParams } from './show.ts'

const list = 'group-jobs'
const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

const GroupJobView = component(
  'GroupJob',
  Type.Object({
    id: text('Id of the job.'),
    kind: Type.Enum(['regroup', 'split'], { description: 'regroup: a dead queue is grouped again.' }),
    state: Type.Enum(['running', 'done', 'cancelled'], { description: 'State of the job.' }),
    queue: text('The dead queue.'),
    group_id: nullable(Type.Integer(), 'The group that is split; null for a regroup job.'),
    new_group_id: nullable(Type.Integer(), 'The group that the split created; null for a regroup job.'),
    filter: FilterView,
    total_count: count('Number of letters of the queue or group when the job was created.'),
    examined_count: count('Number of letters that were looked at.'),
    moved_count: count('Number of letters that changed their group.'),
    actor: text('Who created the job.'),
    reason: text('Why it was created.'),
    created_at: time('When it was created.'),
    updated_at: time('When it last changed.'),
  }),
)
type GroupJobView = Static<typeof GroupJobView>
const JobParams = Type.Object({ id: Type.String({ maxLength: 64, description: 'Id of the job.' }) })

export const groupJobRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/regroup',
    operationId: 'regroupQueue',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'group.write',
    summary: 'Starts a job that groups all letters of a dead queue again, by its present rules.',
    tag: 'groups',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: Type.Object({ name: Type.String({ maxLength: 512, description: 'Name of the dead queue.' }) }),
      body: Type.Object({ reason: Reason }, { additionalProperties: false }),
      response: { 200: GroupJobView },
    },
    handler: async (request, _reply, context) => {
      const { name } = await findQueue(request.params.name, context)
      const attribution = createAttribution(request, request.body.reason)
      return viewJob(await context.letters().groupJobs.regroup(name, attribution))
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/groups/{id}/split',
    operationId: 'splitGroup',
    errors: ['GROUP_NOT_FOUND'],
    permission: 'group.write',
    summary:
      'Starts a job that moves the letters of a group that match a filter to a new group. Letters that arrive ' +
      'later follow the rules of the queue.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: GroupParams,
      body: Type.Object(
        {
          filter: FilterSpec,
          title: Type.Optional(
            Type.String({ minLength: 1, maxLength: titleMax, description: 'The title of the new group.' }),
          ),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: GroupJobView },
    },
    handler: async (request, _reply, context) => {
      const { filter: spec, title = null, reason } = request.body
      if (Object.keys(spec).length === 0)
        throw new InvalidRequest([{ field: 'body.filter', message: 'must have at least one condition' }])
      const filter = await readFilter(spec, 'body.filter', context.storage)
      const attribution = createAttribution(request, reason)
      return viewJob(await context.letters().groupJobs.split(request.params.id, filter, title, attribution))
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/group-jobs',
    operationId: 'listGroupJobs',
    permission: 'letter.read',
    summary: 'Lists the background jobs on groups, newest first.',
    tag: 'groups',
    dialect: v1,
    schema: {
      querystring: pageQuery({}, { default: 50, max: 200 }),
      response: {
        200: Type.Object({
          jobs: Type.Array(GroupJobView, { description: 'The jobs of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query: { cursor, limit } }, _reply, context) => {
      const [beforeId] = cursor === undefined ? [] : readCursor(cursor, list, ['string'])
      const jobs = await context
        .letters()
        .groupJobs.list({ countMax: limit, ...(beforeId !== undefined && { beforeId }) })
      const last = jobs.length < limit ? undefined : jobs.at(-1)
      return {
        jobs: jobs.map(viewJob),
        next_cursor: last === undefined ? null : writeCursor(list, [last.id]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/group-jobs/{id}',
    operationId: 'getGroupJob',
    errors: ['GROUP_JOB_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns a background job on groups, with its progress.',
    tag: 'groups',
    dialect: v1,
    schema: { params: JobParams, response: { 200: GroupJobView } },
    handler: async ({ params: { id } }, _reply, context) => {
      const job = await context.letters().groupJobs.get(id)
      if (job === null) throw new KnownError('GROUP_JOB_NOT_FOUND', `there is no job ${id}`)
      return viewJob(job)
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/group-jobs/{id}/cancel',
    operationId: 'cancelGroupJob',
    errors: ['GROUP_JOB_NOT_FOUND', 'GROUP_JOB_CHANGED'],
    permission: 'group.write',
    summary: 'Cancels a background job on groups. Letters that it moved stay in their new groups.',
    tag: 'groups',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: JobParams,
      body: Type.Object({ reason: Reason }, { additionalProperties: false }),
      response: { 200: GroupJobView },
    },
    handler: async (request, _reply, context) => {
      const attribution = createAttribution(request, request.body.reason)
      return viewJob(await context.letters().groupJobs.cancel(request.params.id, attribution))
    },
  }),
]

function viewJob(job: GroupJob): GroupJobView {
  return {
    id: job.id,
    kind: job.kind,
    state: job.state,
    queue: job.queue,
    group_id: job.groupId,
    new_group_id: job.into,
    filter: viewFilter(job.filter),
    total_count: job.total,
    examined_count: job.examined,
    moved_count: job.moved,
    actor: job.actor,
    reason: job.reason,
    created_at: formatInstant(job.createdAt),
    updated_at: formatInstant(job.updatedAt),
  }
}
