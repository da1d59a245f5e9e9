/** Jobs of pull consumers: the consumer lists them and changes their states. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { systemNamespace } from '../../core/items/queue.ts'
import { redactContent } from '../../core/redaction/redaction.ts'
import { incrementalSecondsMax } from '../../core/webhook/pull-lease.ts'
import type { FoundJob, NextState, QueuedJob } from '../../drivers/webhook/broker/pull-jobs.ts'
import { KnownError } from '../../errors.ts'
import type { Consumer } from '../../storage/contract/webhooks.ts'
import type { ApiContext } from '../context.ts'
import { createAttribution } from '../http/attribution.ts'
import type { Caller } from '../http/caller.ts'
import { mayReadContent } from '../http/content-permission.ts'
import { component } from '../http/openapi/annotations.ts'
import { sendParts, writeListParts } from '../http/wire/json-parts.ts'
import { parseJson } from '../http/wire/parse-json.ts'
import { webhookApi } from './dialect.ts'
import { consumerPath } from './entities.ts'
import { authorizeConsumer } from './find.ts'
import { jobFields, requeuePath, StatusName, toStatusName, viewJob } from './job-view.ts'
import { viewMessageHeaders, viewMessagePayload } from './message-bytes.ts'
import { ConsumerParams, JobParams, readBytes, tokenHeaders, toPath } from './requests.ts'
import { webhookRoute } from './webhook-route.ts'

const countDefault = 25
const countMax = 100

const QueuedJobView = Type.Object({
  ID: Type.String({ description: 'Id of the job.' }),
  Priority: Type.Integer({ description: 'Priority of the message.' }),
  IncrementalTimeout: Type.Integer({ description: 'Additional seconds of the last attempt.' }),
  Message: Type.Object({
    MessageID: Type.String({ description: 'Id of the message.' }),
    Payload: Type.String({ description: 'The payload as text.' }),
    Headers: Type.Record(Type.String(), Type.String(), { description: 'The stored metadata headers.' }),
    ContentType: Type.String({ description: 'Content type of the payload.' }),
  }),
})
const JobDetail = component(
  'WebhookJobDetail',
  Type.Object({
    ...jobFields,
    MessageURL: Type.String({ description: 'Link to the message.' }),
    ChannelURL: Type.String({ description: 'Link to the channel.' }),
    ConsumerURL: Type.String({ description: 'Link to the consumer.' }),
    ProducerURL: Type.String({ description: 'Link to the producer.' }),
    JobRequeueURL: Type.String({ description: 'Link that requeues the job; empty unless it is dead.' }),
  }),
)

const errors = [
  'CHANNEL_NOT_FOUND',
  'TOKEN_REFUSED',
  'CONSUMER_UNKNOWN',
  'CONSUMER_NOT_PULLED',
  'JOB_NOT_FOUND',
  'JOB_OF_ANOTHER',
] as const
const openapi = { headers: Type.Object(tokenHeaders) }
const shared = { dialect: webhookApi, tag: 'webhooks', errors, openapi } as const

export const jobRoutes = [
  webhookRoute({
    ...shared,
    method: 'GET',
    path: '/channel/{channelId}/consumer/{consumerId}/queued-jobs',
    operationId: 'listWebhookQueuedJobs',
    permission: 'webhook.read',
    summary:
      'Lists the queued jobs of a pull consumer, by priority and age. Reading changes nothing. ' +
      'The list ends with the job whose payload reaches 16 MiB together with the ones before it.',
    answerKind: 'large',
    schema: {
      params: ConsumerParams,
      querystring: Type.Object({
        limit: Type.Optional(
          Type.String({ description: 'Number of jobs. Default: 25; above 100 means 100.' }),
        ),
      }),
      response: { 200: Type.Object({ Result: Type.Array(QueuedJobView, { description: 'The jobs.' }) }) },
    },
    handler: async (request, reply, context) => {
      const consumer = await authorizePull(request, context, request.params)
      const jobs = await context.webhooks().broker.listQueuedJobs(consumer, readLimit(request.query.limit))
      const shown = isPayloadShown(request.caller) ? jobs : jobs.map(hidePayload)
      const parts = writeListParts('Result', shown.map(viewQueued))
      return sendParts(reply, 'application/json; charset=utf-8', parts)
    },
  }),
  webhookRoute({
    ...shared,
    method: 'GET',
    path: '/channel/{channelId}/consumer/{consumerId}/job/{jobId}',
    operationId: 'getWebhookJob',
    permission: 'webhook.read',
    summary: 'Returns a job of a pull consumer.',
    schema: { params: JobParams, response: { 200: JobDetail } },
    handler: async (request, _reply, context) => {
      const consumer = await authorizePull(request, context, request.params)
      const job = await findJob(context, consumer, request.params.jobId)
      return viewDetail(request.caller, consumer, job)
    },
  }),
  webhookRoute({
    ...shared,
    method: 'POST',
    path: '/channel/{channelId}/consumer/{consumerId}/job/{jobId}',
    operationId: 'changeWebhookJob',
    permission: 'webhook.write',
    summary: 'Changes the state of a job of a pull consumer.',
    openapi: {
      ...openapi,
      body: {
        description: 'The next state, and for INFLIGHT the additional seconds until the job is queued again.',
        content: {
          'application/json': {
            schema: Type.Object({
              NextState: StatusName,
              IncrementalTimeout: Type.Optional(Type.Integer({ minimum: 0, maximum: incrementalSecondsMax })),
            }),
          },
        },
      },
    },
    schema: {
      params: JobParams,
      body: Type.Any(),
      response: { 202: Type.Null({ description: 'The job has this state now.' }) },
    },
    handler: async (request, reply, context) => {
      const consumer = await authorizePull(request, context, request.params)
      const job = await findJob(context, consumer, request.params.jobId)
      const wanted = readWanted(request)
      const current = toStatusName(job.state.state)
      const { incrementalSeconds: seconds, nextState } = wanted
      if (seconds !== 0 && (nextState !== 'INFLIGHT' || current === 'INFLIGHT'))
        throw new KnownError(
          'BAD_REQUEST',
          `IncrementalTimeout is only allowed with a change to INFLIGHT, not from ${current} to ${nextState}`,
        )
      if (nextState === current) return reply.code(202).send()
      const { broker } = context.webhooks()
      const isChanged = await broker.changeJob(consumer, job, nextState, seconds, createAttribution(request))
      if (isChanged) return reply.code(202).send()
      throw new KnownError('BAD_REQUEST', `the job cannot change from ${current} to ${nextState}`)
    },
  }),
] as const

async function authorizePull(
  request: FastifyRequest,
  context: ApiContext,
  params: Readonly<{ channelId: string; consumerId: string }>,
): Promise<Consumer> {
  const consumer = await authorizeConsumer(request, context, params, 'CONSUMER_UNKNOWN')
  if (consumer.type === 'pull') return consumer
  throw new KnownError('CONSUMER_NOT_PULLED', `consumer ${consumer.id} is of type ${consumer.type}, not pull`)
}

export async function findJob(context: ApiContext, consumer: Consumer, jobId: string): Promise<FoundJob> {
  const job = await context.webhooks().broker.findJob(consumer, jobId)
  if (job === 'missing') throw new KnownError('JOB_NOT_FOUND', `job ${jobId} does not exist`)
  if (job !== 'other') return job
  throw new KnownError('JOB_OF_ANOTHER', `job ${jobId} belongs to another channel or consumer`)
}

function readLimit(text: string | undefined): number {
  if (text === undefined || text === '') return countDefault
  if (!/^\+?\d{1,300}$/.test(text)) throw new KnownError('BAD_REQUEST', `limit is ${JSON.stringify(text)}`)
  return Math.min(Number(text), countMax)
}

const nextStates: readonly NextState[] = ['QUEUED', 'INFLIGHT', 'DELIVERED', 'DEAD']

/** The body is JSON, whatever its Content-Type is. */
function readWanted(request: FastifyRequest): Readonly<{ nextState: NextState; incrementalSeconds: number }> {
  const body = readJsonObject(request)
  const nextState = nextStates.find((each) => each === body.NextState)
  if (nextState === undefined) {
    throw new KnownError('BAD_REQUEST', `NextState must be one of ${nextStates.join(', ')}`)
  }
  const seconds = body.IncrementalTimeout ?? 0
  const isValid = typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= 0
  if (!isValid || seconds > incrementalSecondsMax) {
    throw new KnownError(
      'BAD_REQUEST',
      `IncrementalTimeout must be a whole number from 0 to ${incrementalSecondsMax}`,
    )
  }
  return { nextState, incrementalSeconds: seconds }
}

function readJsonObject(request: FastifyRequest): Readonly<Record<string, unknown>> {
  let body: unknown
  try {
    body = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(readBytes(request)))
  } catch {
    body = undefined
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Readonly<Record<string, unknown>>
  throw new KnownError('BAD_REQUEST', 'the body is not a JSON object')
}

/** A pull consumer changes the states of its jobs, so it has the permission to do so. */
function isPayloadShown(caller: Caller): boolean {
  return mayReadContent(caller, systemNamespace) || caller.may('webhook.write', systemNamespace)
}

function hidePayload(job: QueuedJob): QueuedJob {
  const { payload, headers } = redactContent({ ...job.message, key: null })
  return { ...job, message: { ...job.message, payload, headers } }
}

function viewQueued({ jobId, priority, incrementalSeconds, message }: QueuedJob) {
  return {
    ID: jobId,
    Priority: priority,
    IncrementalTimeout: incrementalSeconds,
    Message: {
      MessageID: message.messageId,
      Payload: viewMessagePayload(message.payload),
      Headers: viewMessageHeaders(message.headers),
      ContentType: message.contentType,
    },
  }
}

function viewDetail(
  caller: Caller,
  consumer: Consumer,
  { jobId, message, state }: FoundJob,
): Static<typeof JobDetail> {
  return {
    ...viewJob(caller, consumer, state.state, state.changedAt),
    MessageURL: toPath('channel', consumer.channelId, 'message', message.id),
    ChannelURL: toPath('channel', consumer.channelId),
    ConsumerURL: consumerPath(consumer.channelId, consumer.id),
    ProducerURL: toPath('producer', message.producerId),
    JobRequeueURL: state.state === 'dead' ? requeuePath(consumer, jobId) : '',
  }
}
