/** Messages of a channel: lists, single messages and their numbers by status. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { KnownError } from '../../errors.ts'
import type { Message, MessageHead, ScheduledMessage } from '../../storage/contract/webhooks.ts'
import type { ApiContext } from '../context.ts'
import type { Caller } from '../http/caller.ts'
import { component } from '../http/openapi/annotations.ts'
import { type LargeBytes, sendParts, writeJsonParts } from '../http/wire/json-parts.ts'
import { formatInstant } from '../http/wire/wire-time.ts'
import { webhookApi } from './dialect.ts'
import { LinkList } from './entities.ts'
import { findChannel } from './find.ts'
import { JobView, viewJob } from './job-view.ts'
import { viewMessageHeaders, viewMessagePayload } from './message-bytes.ts'
import {
  ChannelParams,
  linkPages,
  MessageParams,
  PageParameters,
  Pages,
  readPage,
  toPath,
} from './requests.ts'
import { webhookRoute } from './webhook-route.ts'

const Headers = Type.Record(Type.String(), Type.String(), { description: 'The stored metadata headers.' })
const MessageView = component(
  'WebhookMessage',
  Type.Object({
    ID: Type.String({ description: 'Id of the message.' }),
    Payload: Type.String({ description: 'The payload as text.' }),
    ContentType: Type.String({ description: 'Content type of the payload.' }),
    ProducedBy: Type.String({ description: 'Name of the producer.' }),
    ReceivedAt: Type.String({ format: 'date-time', description: 'When the message was stored.' }),
    DispatchedAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When its jobs were created.',
    }),
    Status: Type.Enum(['ACKNOWLEDGED', 'DISPATCHED'], { description: 'Whether its jobs exist.' }),
    Jobs: Type.Array(JobView, { description: 'All jobs of the message.' }),
    Headers,
  }),
)
const ScheduledView = component(
  'WebhookScheduledMessage',
  Type.Object({
    id: Type.String({ description: 'Generated id.' }),
    messageId: Type.String({ description: 'Id of the message.' }),
    contentType: Type.String({ description: 'Content type of the payload.' }),
    priority: Type.Integer({ description: 'Priority of the message.' }),
    producedBy: Type.String({ description: 'Id of the producer.' }),
    dispatchSchedule: Type.String({ format: 'date-time', description: 'When the message is due.' }),
    dispatchedAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When it became a regular message.',
    }),
    status: Type.Enum(['SCHEDULED', 'DISPATCHED'], { description: 'Whether it became a regular message.' }),
    payload: Type.String({ description: 'The payload as text.' }),
    headers: Headers,
  }),
)
const StatusCount = Type.Object({
  Count: Type.Integer({ description: 'Number of messages.' }),
  Links: Type.Record(Type.String(), Type.String(), { description: 'Links to the messages.' }),
})
const StatusCounts = component(
  'WebhookMessageCounts',
  Type.Object({
    counts: Type.Record(Type.String(), StatusCount, { description: 'By status, without zeros.' }),
    next_scheduled_message_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'When the next scheduled message is due.' }),
    ),
  }),
)

const jsonType = 'application/json; charset=utf-8'
const shared = { method: 'GET', dialect: webhookApi, tag: 'webhooks', permission: 'webhook.read' } as const
const listQuery = Type.Object({
  ...PageParameters.properties,
  status: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], { description: 'Status codes: 101, 102.' }),
  ),
})

export const messageRoutes = [
  webhookRoute({
    ...shared,
    path: '/channel/{channelId}/messages',
    operationId: 'listWebhookMessages',
    summary: 'Lists the messages of a channel, newest first.',
    errors: ['CHANNEL_NOT_FOUND'],
    schema: { params: ChannelParams, querystring: listQuery, response: { 200: LinkList } },
    handler: async (request, _reply, context) => {
      const { channelId } = request.params
      const query = await readListQuery(request, context, channelId)
      const rows = query === null ? [] : await context.storage().listMessages(query)
      const links = rows.map(({ id }) => toPath('channel', channelId, 'message', id))
      return { Result: links, Pages: linkRows(request, rows), Links: null }
    },
  }),
  webhookRoute({
    ...shared,
    path: '/channel/{channelId}/message/{messageId}',
    operationId: 'getWebhookMessage',
    summary: 'Returns a message with all its jobs.',
    errors: ['CHANNEL_NOT_FOUND', 'MESSAGE_NOT_FOUND'],
    answerKind: 'large',
    schema: { params: MessageParams, response: { 200: MessageView } },
    handler: async (request, reply, context) => {
      const { channelId, messageId } = request.params
      await findChannel(context, channelId)
      const message = await context.storage().getMessage(channelId, messageId)
      if (message === null) throw messageNotFound(channelId, messageId)
      return sendParts(reply, jsonType, writeJsonParts(await viewMessage(request.caller, context, message)))
    },
  }),
  webhookRoute({
    ...shared,
    path: '/channel/{channelId}/messages-status',
    operationId: 'countWebhookMessages',
    summary: 'Returns the numbers of messages by status.',
    errors: ['CHANNEL_NOT_FOUND'],
    schema: { params: ChannelParams, response: { 200: StatusCounts } },
    handler: async (request, _reply, context) => {
      const { channelId } = request.params
      await findChannel(context, channelId)
      return viewCounts(context, channelId)
    },
  }),
  webhookRoute({
    ...shared,
    path: '/channel/{channelId}/scheduled-messages',
    operationId: 'listWebhookScheduledMessages',
    summary: 'Lists the scheduled messages of a channel, newest first.',
    errors: ['CHANNEL_NOT_FOUND'],
    schema: {
      params: ChannelParams,
      querystring: listQuery,
      response: {
        200: Type.Object({
          result: Type.Array(Type.String(), { description: 'Links, newest first, up to 25.' }),
          pages: Pages,
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { channelId } = request.params
      const query = await readListQuery(request, context, channelId)
      const rows = query === null ? [] : await context.storage().listScheduled(query)
      const result = rows.map(({ id }) => toPath('channel', channelId, 'scheduled-message', id))
      return { result, pages: linkRows(request, rows) }
    },
  }),
  webhookRoute({
    ...shared,
    path: '/channel/{channelId}/scheduled-message/{messageId}',
    operationId: 'getWebhookScheduledMessage',
    summary: 'Returns a scheduled message.',
    errors: ['CHANNEL_NOT_FOUND', 'MESSAGE_NOT_FOUND'],
    answerKind: 'large',
    schema: { params: MessageParams, response: { 200: ScheduledView } },
    handler: async (request, reply, context) => {
      const { channelId, messageId } = request.params
      await findChannel(context, channelId)
      const message = await context.storage().getScheduled(channelId, messageId)
      if (message === null) throw messageNotFound(channelId, messageId)
      return sendParts(reply, jsonType, writeJsonParts(viewScheduled(message)))
    },
  }),
] as const

function messageNotFound(channelId: string, id: string): KnownError {
  return new KnownError('MESSAGE_NOT_FOUND', `channel ${channelId} has no message ${id}`)
}

/** Null: only statuses that do not exist are asked for. */
async function readListQuery(request: FastifyRequest, context: ApiContext, channelId: string) {
  const page = readPage(request)
  await findChannel(context, channelId)
  const given = new URL(request.raw.url ?? '', 'http://localhost').searchParams.getAll('status')
  const statuses = given.map(Number)
  const isNoneKnown = given.length > 0 && !statuses.some((status) => status === 101 || status === 102)
  return isNoneKnown ? null : { channelId, statuses, ...page }
}

function linkRows(request: FastifyRequest, rows: readonly MessageHead[]): Record<string, string> {
  return linkPages(request, rows)
}

/** A view whose payload is written when it is sent. */
type WithLargePayload<View, Name extends keyof View> = Omit<View, Name> &
  Readonly<Record<Name, string | LargeBytes>>

async function viewMessage(
  caller: Caller,
  { storage }: ApiContext,
  message: Message,
): Promise<WithLargePayload<Static<typeof MessageView>, 'Payload'>> {
  const [states, consumers] = await Promise.all([
    storage().readJobs(message.jobs),
    storage().listConsumersByNumber(message.jobs.map(({ consumerNumber }) => consumerNumber)),
  ])
  const byNumber = new Map(consumers.map((consumer) => [consumer.number, consumer]))
  const jobs = message.jobs.flatMap(({ consumerNumber }, index) => {
    const [consumer, state] = [byNumber.get(consumerNumber), states[index]]
    return consumer === undefined || state == null
      ? []
      : [viewJob(caller, consumer, state.state, state.changedAt)]
  })
  return {
    ID: message.id,
    Payload: viewMessagePayload(message.payload),
    ContentType: message.contentType,
    ProducedBy: message.producerName,
    ReceivedAt: formatInstant(message.receivedAt),
    DispatchedAt: message.dispatchedAt === null ? null : formatInstant(message.dispatchedAt),
    Status: message.dispatchedAt === null ? 'ACKNOWLEDGED' : 'DISPATCHED',
    Jobs: jobs,
    Headers: viewMessageHeaders(message.headers),
  }
}

function viewScheduled(message: ScheduledMessage): WithLargePayload<Static<typeof ScheduledView>, 'payload'> {
  return {
    id: message.xid,
    messageId: message.id,
    contentType: message.contentType,
    priority: message.priority,
    producedBy: message.producerId,
    dispatchSchedule: formatInstant(message.dueAt),
    dispatchedAt: message.dispatchedAt === null ? null : formatInstant(message.dispatchedAt),
    status: message.dispatchedAt === null ? 'SCHEDULED' : 'DISPATCHED',
    payload: viewMessagePayload(message.payload),
    headers: viewMessageHeaders(message.headers),
  }
}

async function viewCounts({ storage }: ApiContext, channelId: string): Promise<Static<typeof StatusCounts>> {
  const counted = await storage().countMessages(channelId)
  const path = toPath('channel', channelId)
  const rows = [
    ['ACKNOWLEDGED', counted.acknowledged, 'messages', 101],
    ['DISPATCHED', counted.dispatched, 'messages', 102],
    ['SCHEDULED_SCHEDULED', counted.scheduled, 'scheduled-messages', 101],
    ['SCHEDULED_DISPATCHED', counted.scheduledDispatched, 'scheduled-messages', 102],
  ] as const
  const counts = rows
    .filter(([, count]) => count > 0)
    .map(([name, Count, list, status]) => [
      name,
      { Count, Links: { messages: `${path}/${list}?status=${status}` } },
    ])
  const { nextScheduledAt } = counted
  return {
    counts: Object.fromEntries(counts),
    ...(nextScheduledAt !== null && { next_scheduled_message_at: formatInstant(nextScheduledAt) }),
  }
}
