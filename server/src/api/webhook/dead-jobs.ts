/** Dead jobs: the open letters in the dead queue of a consumer. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { textOfKey } from '../../core/webhook/job-id.ts'
import { isSameToken } from '../../core/webhook/token.ts'
import { KnownError } from '../../errors.ts'
import { deadJobStates, isDeletable, purgeDeadJobs, requeueDeadJobs } from '../../letters/dead-jobs.ts'
import type { LetterCursor, ListedLetter } from '../../storage/contract/letters.ts'
import type { Consumer, PageQuery } from '../../storage/contract/webhooks.ts'
import type { ApiContext } from '../context.ts'
import { createAttribution } from '../http/attribution.ts'
import { webhookApi } from './dialect.ts'
import { authorizeConsumer, findChannel, findConsumer } from './find.ts'
import { jobFields, requeuePath, viewJob } from './job-view.ts'
import { findJob } from './jobs.ts'
import {
  ConsumerParams,
  JobParams,
  linkPages,
  PageParameters,
  Pages,
  readForm,
  readPage,
  tokenHeaders,
  toPath,
} from './requests.ts'
import { webhookRoute } from './webhook-route.ts'

const shared = { dialect: webhookApi, tag: 'webhooks' } as const
const withTokens = { openapi: { headers: Type.Object(tokenHeaders) } }
const dlqPath = '/channel/{channelId}/consumer/{consumerId}/dlq'
const jobPath = '/channel/{channelId}/consumer/{consumerId}/job/{jobId}'

export const deadJobRoutes = [
  webhookRoute({
    ...shared,
    method: 'GET',
    path: dlqPath,
    operationId: 'listWebhookDeadJobs',
    permission: 'webhook.read',
    summary: 'Lists the dead jobs of a consumer, newest first.',
    errors: ['CHANNEL_NOT_FOUND', 'CONSUMER_NOT_FOUND'],
    schema: {
      params: ConsumerParams,
      querystring: PageParameters,
      response: {
        200: Type.Object({
          DeadJobs: Type.Array(
            Type.Object({
              ...jobFields,
              MessageURL: Type.String({ description: 'Link to the message.' }),
              JobRequeueURL: Type.String({ description: 'Link that requeues the job.' }),
            }),
            { description: 'The dead jobs, up to 25.' },
          ),
          Pages,
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { channelId, consumerId } = request.params
      const page = readPage(request)
      await findChannel(context, channelId)
      const consumer = await findConsumer(context, channelId, consumerId)
      const letters = await listDeadJobs(context, consumer, page)
      const rows = letters.map((letter) => ({ xid: letter.reference, createdAt: letter.deadLetteredAt ?? 0 }))
      return {
        DeadJobs: letters.map((letter) => ({
          ...viewJob(request.caller, consumer, 'dead', letter.updatedAt),
          MessageURL: toPath('channel', channelId, 'message', textOfKey(letter.key)),
          JobRequeueURL: requeuePath(consumer, letter.reference),
        })),
        Pages: linkPages(request, rows),
      }
    },
  }),
  webhookRoute({
    ...shared,
    method: 'POST',
    path: dlqPath,
    operationId: 'requeueWebhookDeadJobs',
    permission: 'webhook.write',
    summary: 'Requeues all dead jobs of a consumer: each gets a new round of attempts.',
    errors: ['CHANNEL_NOT_FOUND', 'CONSUMER_NOT_FOUND', 'UNSUPPORTED_MEDIA_TYPE'],
    slowMs: 60_000,
    openapi: {
      body: {
        description: 'A form.',
        content: {
          'application/x-www-form-urlencoded': {
            schema: Type.Object({ requeue: Type.String({ description: 'Token of the consumer.' }) }),
          },
        },
      },
    },
    schema: {
      params: ConsumerParams,
      body: Type.Any(),
      response: { 202: Type.Null({ description: 'The jobs are queued.' }) },
    },
    handler: async (request, reply, context) => {
      const { channelId, consumerId } = request.params
      const form = readForm(request)
      await findChannel(context, channelId)
      const consumer = await findConsumer(context, channelId, consumerId)
      if (!isSameToken(consumer.token, form.get('requeue')))
        throw new KnownError('BAD_REQUEST', 'requeue is not the token of the consumer')
      const parts = { letters: context.letters(), clock: context.clock }
      await requeueDeadJobs(parts, consumer.deadQueue, createAttribution(request, 'requeue of all dead jobs'))
      return reply.code(202).send()
    },
  }),
  webhookRoute({
    ...shared,
    ...withTokens,
    method: 'DELETE',
    path: dlqPath,
    operationId: 'purgeWebhookDeadJobs',
    permission: 'webhook.write',
    summary: 'Deletes all dead jobs of a consumer that have used their retries.',
    errors: ['CHANNEL_NOT_FOUND', 'CONSUMER_NOT_FOUND', 'TOKEN_REFUSED'],
    slowMs: 60_000,
    schema: {
      params: ConsumerParams,
      response: {
        200: Type.Object({ deletedCount: Type.Integer({ description: 'Number of deleted jobs.' }) }),
      },
    },
    handler: async (request, _reply, context) => {
      const consumer = await authorizeConsumer(request, context, request.params, 'CONSUMER_NOT_FOUND')
      const parts = { letters: context.letters(), clock: context.clock }
      const { retriesMax } = context.webhooks().broker.rules
      const attribution = createAttribution(request, 'purge of dead jobs')
      return { deletedCount: await purgeDeadJobs(parts, consumer.deadQueue, retriesMax, attribution) }
    },
  }),
  webhookRoute({
    ...shared,
    ...withTokens,
    method: 'POST',
    path: `${jobPath}/requeue-dead-job`,
    operationId: 'requeueWebhookDeadJob',
    permission: 'webhook.write',
    summary: 'Requeues a dead job: it gets a new round of attempts.',
    errors: ['CHANNEL_NOT_FOUND', 'TOKEN_REFUSED', 'CONSUMER_UNKNOWN', 'JOB_NOT_FOUND', 'JOB_OF_ANOTHER'],
    isBodyOptional: true,
    schema: {
      params: JobParams,
      body: Type.Any(),
      response: { 202: Type.Null({ description: 'The job is queued.' }) },
    },
    handler: async (request, reply, context) => {
      const consumer = await authorizeConsumer(request, context, request.params, 'CONSUMER_UNKNOWN')
      const { jobId, state } = await findJob(context, consumer, request.params.jobId)
      const letterId = state.state === 'dead' ? state.letterId : null
      const how = { target: null, edit: null, isDeadAllowed: true, isCapped: false } as const
      const attribution = createAttribution(request, 'requeue of a dead job')
      const [result] = letterId === null ? [] : await context.letters().redrive([letterId], how, attribution)
      if (result?.isStarted === true) return reply.code(202).send()
      throw new KnownError('BAD_REQUEST', `job ${jobId} is not dead`)
    },
  }),
  webhookRoute({
    ...shared,
    ...withTokens,
    method: 'DELETE',
    path: jobPath,
    operationId: 'deleteWebhookDeadJob',
    permission: 'webhook.write',
    summary: 'Deletes a dead job that has used its retries.',
    errors: ['CHANNEL_NOT_FOUND', 'CONSUMER_NOT_FOUND', 'TOKEN_REFUSED', 'JOB_NOT_FOUND'],
    schema: { params: JobParams, response: { 204: Type.Null({ description: 'Deleted.' }) } },
    handler: async (request, reply, context) => {
      const consumer = await authorizeConsumer(request, context, request.params, 'CONSUMER_NOT_FOUND')
      if (await deleteDeadJob(request, context, consumer, request.params.jobId)) return reply.code(204).send()
      throw new KnownError('JOB_NOT_FOUND', `consumer ${consumer.id} has no dead job ${request.params.jobId}`)
    },
  }),
] as const

async function deleteDeadJob(
  request: FastifyRequest,
  context: ApiContext,
  consumer: Consumer,
  jobId: string,
): Promise<boolean> {
  const { broker } = context.webhooks()
  const job = await broker.findJob(consumer, jobId)
  if (typeof job === 'string' || job.state.state !== 'dead' || job.state.letterId === null) return false
  if (!isDeletable(job.state, broker.rules.retriesMax)) return false
  const attribution = createAttribution(request, 'deletion of a dead job')
  const [result] = await context.letters().discard([job.state.letterId], attribution)
  return result?.isDiscarded === true
}

/** A page of dead jobs from newest to oldest. */
async function listDeadJobs(
  context: ApiContext,
  { deadQueue }: Consumer,
  { olderThan, newerThan, countMax }: PageQuery,
): Promise<readonly ListedLetter[]> {
  const isBackwards = olderThan === undefined && newerThan !== undefined
  const position = olderThan ?? newerThan
  let after = position && (await findCursor(context, deadQueue, position))
  const found: ListedLetter[] = []
  for (;;) {
    const page = await context.letters().list({
      filter: { queues: [deadQueue], states: deadJobStates },
      order: 'deadLetteredAt',
      isDescending: !isBackwards,
      countMax: countMax - found.length,
      bytes: 'head',
      ...(after !== undefined && { after }),
    })
    found.push(...page.letters)
    if (page.next === null || found.length >= countMax) return isBackwards ? found.reverse() : found
    after = page.next
  }
}

/** The position of a job in the list. Without its letter, the list continues at its time. */
async function findCursor(
  { storage }: ApiContext,
  deadQueue: string,
  { id, createdAt }: NonNullable<PageQuery['olderThan']>,
): Promise<LetterCursor> {
  const records = await storage().findLetterIds([id])
  const letters = await storage().getLetters(
    records.map(({ letterId }) => letterId),
    'head',
  )
  const letter = letters.find(
    ({ queue, deadLetteredAt }) => queue === deadQueue && deadLetteredAt === createdAt,
  )
  return { value: createdAt, id: letter?.id ?? '' }
}
