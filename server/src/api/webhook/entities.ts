/** Producers, channels and consumers. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, type TObject, Type } from 'typebox'
import { systemNamespace } from '../../core/items/queue.ts'
import { redactedText } from '../../core/redaction/redaction.ts'
import type { EntityChange } from '../../drivers/webhook/broker/broker.ts'
import { KnownError } from '../../errors.ts'
import type { Channel, Consumer, Producer, PutResult } from '../../storage/contract/webhooks.ts'
import { createAttribution } from '../http/attribution.ts'
import { component } from '../http/openapi/annotations.ts'
import { hideCallbackUrl } from './callback-url.ts'
import { webhookApi } from './dialect.ts'
import { channelNotFound, consumerNotFound, findChannel, findConsumer } from './find.ts'
import {
  ChannelParams,
  ConsumerParams,
  checkNewId,
  formatSecond,
  linkPages,
  PageParameters,
  Pages,
  ProducerParams,
  readCondition,
  readField,
  readForm,
  readPage,
  refuseCondition,
  setLastModified,
  toPath,
} from './requests.ts'
import { webhookRoute } from './webhook-route.ts'

const entityFields = {
  ID: Type.String({ description: 'The id that the client chose.' }),
  Name: Type.String({ description: 'Name for people; default: the id.' }),
  Token: Type.String({
    description: 'Secret that authorizes requests; [redacted] without the permission webhook.write.',
  }),
  ChangedAt: Type.String({ format: 'date-time', description: 'Time of the last change.' }),
}
const link = (description: string) => Type.String({ description })
const ProducerView = component('WebhookProducer', Type.Object(entityFields))
const ChannelView = component(
  'WebhookChannel',
  Type.Object({
    ...entityFields,
    ConsumersURL: link('Link to the consumers of the channel.'),
    MessagesURL: link('Link to the messages of the channel.'),
    BroadcastURL: link('Where producers broadcast messages.'),
    MessagesStatusURL: link('Link to the numbers of messages by status.'),
  }),
)
const ConsumerView = component(
  'ChannelConsumer',
  Type.Object({
    ...entityFields,
    CallbackURL: link(
      'Where jobs of the consumer are pushed; only scheme and host without the permission webhook.write or payload.read.',
    ),
    DeadLetterQueueURL: link('Link to the dead jobs of the consumer.'),
    Type: Type.Enum(['push', 'pull'], {
      description: 'Whether jobs are pushed, or the consumer fetches them.',
    }),
  }),
)
export const LinkList = component(
  'WebhookLinks',
  Type.Object({
    Result: Type.Array(Type.String(), { description: 'Links, newest first, up to 25.' }),
    Pages,
    Links: Type.Null(),
  }),
)

function viewEntity({ id, name, token, changedAt }: Producer): Static<typeof ProducerView> {
  return { ID: id, Name: name, Token: token, ChangedAt: formatSecond(changedAt) }
}

function viewChannel(channel: Channel): Static<typeof ChannelView> {
  const path = toPath('channel', channel.id)
  return {
    ...viewEntity(channel),
    ConsumersURL: `${path}/consumers`,
    MessagesURL: `${path}/messages`,
    BroadcastURL: `${path}/broadcast`,
    MessagesStatusURL: `${path}/messages-status`,
  }
}

export function consumerPath(channelId: string, id: string): string {
  return toPath('channel', channelId, 'consumer', id)
}

function viewConsumer(consumer: Consumer): Static<typeof ConsumerView> {
  return {
    ...viewEntity(consumer),
    CallbackURL: consumer.callbackUrl,
    DeadLetterQueueURL: `${consumerPath(consumer.channelId, consumer.id)}/dlq`,
    Type: consumer.type,
  }
}

/** A person who may only read could otherwise act with the token. */
function hideToken<T extends Producer>({ caller }: FastifyRequest, row: T): T {
  return caller.may('webhook.write', systemNamespace) ? row : { ...row, token: redactedText }
}

function answer<T extends Producer, V>(reply: FastifyReply, row: T, view: (row: T) => V): V {
  setLastModified(reply, row.changedAt)
  return view(row)
}

function takeRow<T>(put: PutResult<T>, channelId: string): T {
  if ('row' in put) return put.row
  throw put.outcome === 'channel-missing' ? channelNotFound(channelId) : refuseCondition(put.outcome)
}

function readChange(request: FastifyRequest): EntityChange & Readonly<{ form: URLSearchParams }> {
  const form = readForm(request)
  const [name, token] = [readField(form, 'name'), readField(form, 'token')]
  return {
    form,
    condition: readCondition(request),
    attribution: createAttribution(request),
    ...(name !== undefined && { name }),
    ...(token !== undefined && { token }),
  }
}

function listLinks<T extends Producer>(
  request: FastifyRequest,
  rows: readonly T[],
  toLink: (row: T) => string,
): Static<typeof LinkList> {
  return { Result: rows.map(toLink), Pages: linkPages(request, rows), Links: null }
}

const formBody = (fields: TObject) => ({
  body: {
    description: 'A form.',
    content: { 'application/x-www-form-urlencoded': { schema: fields } },
  },
  headers: Type.Object({
    'If-Unmodified-Since': Type.Optional(
      Type.String({ description: 'Last-Modified of the existing object. Required to change it.' }),
    ),
  }),
})
const entityForm = {
  token: Type.Optional(Type.String({ description: 'Default: a new random token.' })),
  name: Type.Optional(Type.String({ description: 'Default: the id.' })),
}
const shared = { dialect: webhookApi, tag: 'webhooks' } as const
const reading = { ...shared, method: 'GET', permission: 'webhook.read' } as const
const putting = { ...shared, method: 'PUT', permission: 'webhook.write' } as const

const producerRoutes = [
  webhookRoute({
    ...reading,
    path: '/producers',
    operationId: 'listWebhookProducers',
    summary: 'Lists producers, newest first.',
    schema: { querystring: PageParameters, response: { 200: LinkList } },
    handler: async (request, _reply, { storage }) =>
      listLinks(request, await storage().listProducers(readPage(request)), ({ id }) =>
        toPath('producer', id),
      ),
  }),
  webhookRoute({
    ...reading,
    path: '/producer/{producerId}',
    operationId: 'getWebhookProducer',
    summary: 'Returns a producer.',
    errors: ['PRODUCER_NOT_FOUND'],
    schema: { params: ProducerParams, response: { 200: ProducerView } },
    handler: async (request, reply, { storage }) => {
      const { producerId } = request.params
      const producer = await storage().getProducer(producerId)
      if (producer === null)
        throw new KnownError('PRODUCER_NOT_FOUND', `producer ${producerId} does not exist`)
      return answer(reply, hideToken(request, producer), viewEntity)
    },
  }),
  webhookRoute({
    ...putting,
    path: '/producer/{producerId}',
    operationId: 'putWebhookProducer',
    summary: 'Creates a producer, or replaces it.',
    errors: ['CONDITION_FAILED', 'UNSUPPORTED_MEDIA_TYPE'],
    openapi: formBody(Type.Object(entityForm)),
    schema: { params: ProducerParams, body: Type.Any(), response: { 200: ProducerView } },
    handler: async (request, reply, { webhooks }) => {
      const { producerId } = request.params
      const change = readChange(request)
      checkNewId('producer', producerId)
      return answer(reply, takeRow(await webhooks().broker.putProducer(producerId, change), ''), viewEntity)
    },
  }),
] as const

const channelRoutes = [
  webhookRoute({
    ...reading,
    path: '/channels',
    operationId: 'listWebhookChannels',
    summary: 'Lists channels, newest first.',
    schema: { querystring: PageParameters, response: { 200: LinkList } },
    handler: async (request, _reply, { storage }) =>
      listLinks(request, await storage().listChannels(readPage(request)), ({ id }) => toPath('channel', id)),
  }),
  webhookRoute({
    ...reading,
    path: '/channel/{channelId}',
    operationId: 'getWebhookChannel',
    summary: 'Returns a channel.',
    errors: ['CHANNEL_NOT_FOUND'],
    schema: { params: ChannelParams, response: { 200: ChannelView } },
    handler: async (request, reply, context) =>
      answer(reply, hideToken(request, await findChannel(context, request.params.channelId)), viewChannel),
  }),
  webhookRoute({
    ...putting,
    path: '/channel/{channelId}',
    operationId: 'putWebhookChannel',
    summary: 'Creates a channel, or replaces it.',
    errors: ['CONDITION_FAILED', 'UNSUPPORTED_MEDIA_TYPE'],
    openapi: formBody(Type.Object(entityForm)),
    schema: { params: ChannelParams, body: Type.Any(), response: { 200: ChannelView } },
    handler: async (request, reply, { webhooks }) => {
      const { channelId } = request.params
      const change = readChange(request)
      checkNewId('channel', channelId)
      return answer(reply, takeRow(await webhooks().broker.putChannel(channelId, change), ''), viewChannel)
    },
  }),
] as const

const consumerRoutes = [
  webhookRoute({
    ...reading,
    path: '/channel/{channelId}/consumers',
    operationId: 'listChannelConsumers',
    summary: 'Lists the consumers of a channel, newest first.',
    errors: ['CHANNEL_NOT_FOUND'],
    schema: { params: ChannelParams, querystring: PageParameters, response: { 200: LinkList } },
    handler: async (request, _reply, context) => {
      const { channelId } = request.params
      const page = readPage(request)
      await findChannel(context, channelId)
      const consumers = await context.storage().listConsumers({ channelId, ...page })
      return listLinks(request, consumers, ({ id }) => consumerPath(channelId, id))
    },
  }),
  webhookRoute({
    ...reading,
    path: '/channel/{channelId}/consumer/{consumerId}',
    operationId: 'getChannelConsumer',
    summary: 'Returns a consumer.',
    errors: ['CHANNEL_NOT_FOUND', 'CONSUMER_NOT_FOUND'],
    schema: { params: ConsumerParams, response: { 200: ConsumerView } },
    handler: async (request, reply, context) => {
      const { channelId, consumerId } = request.params
      const consumer = await findConsumer(context, channelId, consumerId)
      return answer(reply, hideToken(request, hideCallbackUrl(request.caller, consumer)), viewConsumer)
    },
  }),
  webhookRoute({
    ...putting,
    path: '/channel/{channelId}/consumer/{consumerId}',
    operationId: 'putChannelConsumer',
    summary: 'Creates a consumer, or replaces it.',
    errors: ['CHANNEL_NOT_FOUND', 'CONDITION_FAILED', 'UNSUPPORTED_MEDIA_TYPE'],
    openapi: formBody(
      Type.Object({
        ...entityForm,
        callbackUrl: Type.String({ description: 'Absolute URL that jobs are pushed to.' }),
        type: Type.Optional(Type.Enum(['push', 'pull'], { description: 'Default: push.' })),
      }),
    ),
    schema: { params: ConsumerParams, body: Type.Any(), response: { 200: ConsumerView } },
    handler: async (request, reply, context) => {
      const { channelId, consumerId } = request.params
      const { form, ...change } = readChange(request)
      await findChannel(context, channelId)
      checkNewId('consumer', consumerId)
      const wanted = { ...change, callbackUrl: readCallbackUrl(form), type: readType(form) }
      const put = await context.webhooks().broker.putConsumer(channelId, consumerId, wanted)
      return answer(reply, takeRow(put, channelId), viewConsumer)
    },
  }),
  webhookRoute({
    ...shared,
    method: 'DELETE',
    permission: 'webhook.write',
    path: '/channel/{channelId}/consumer/{consumerId}',
    operationId: 'deleteChannelConsumer',
    summary: 'Deletes a consumer that has no jobs.',
    errors: ['CHANNEL_NOT_FOUND', 'CONSUMER_NOT_FOUND', 'CONSUMER_HAS_JOBS', 'CONDITION_FAILED'],
    openapi: {
      headers: Type.Object({ 'If-Unmodified-Since': Type.String({ description: 'Its Last-Modified.' }) }),
    },
    schema: { params: ConsumerParams, response: { 204: Type.Null({ description: 'Deleted.' }) } },
    handler: async (request, reply, { webhooks }) => {
      const { channelId, consumerId } = request.params
      const { broker } = webhooks()
      const attribution = createAttribution(request)
      const { refusal } = await broker.deleteConsumer(
        channelId,
        consumerId,
        readCondition(request),
        attribution,
      )
      if (refusal === null) return reply.code(204).send()
      if (refusal === 'missing') throw consumerNotFound(channelId, consumerId)
      if (refusal !== 'has-jobs') throw refuseCondition(refusal)
      throw new KnownError(
        'CONSUMER_HAS_JOBS',
        `consumer ${consumerId} of channel ${channelId} still has jobs`,
      )
    },
  }),
] as const

/** Also required for pull consumers. */
function readCallbackUrl(form: URLSearchParams): string {
  const text = readField(form, 'callbackUrl')
  const url = text === undefined ? null : URL.parse(text)
  if (text === undefined || url === null || url.host === '') {
    throw new KnownError('BAD_REQUEST', 'callbackUrl is missing, or not an absolute URL')
  }
  return text
}

function readType(form: URLSearchParams): Consumer['type'] {
  const type = form.get('type') || 'push'
  if (type === 'push' || type === 'pull') return type
  throw new KnownError('BAD_REQUEST', `type is ${JSON.stringify(type)}; it must be push or pull`)
}

export const entityRoutes = [...producerRoutes, ...channelRoutes, ...consumerRoutes] as const
