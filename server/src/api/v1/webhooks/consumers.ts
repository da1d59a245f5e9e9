/** Webhook consumers: their state, their settings, pause and resume. */
import { Type } from 'typebox'
import type { ConsumerName } from '../../../drivers/webhook/deliveries/deliveries.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { isCallbackUrlShown } from '../../webhook/callback-url.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { ConsumerSettingsSpec, readConsumerSettings } from './consumer-settings.ts'
import { ConsumerView, viewConsumer } from './consumer-view.ts'

const id = (description: string) => Type.String({ minLength: 1, maxLength: 255, description })
export const ConsumerParams = Type.Object({
  channel: id('Id of the channel.'),
  consumer: id('Id of the consumer.'),
})

export const toName = ({ channel, consumer }: { channel: string; consumer: string }): ConsumerName => ({
  channelId: channel,
  consumerId: consumer,
})

const list = 'webhook-consumers'

const summaries = {
  pause: 'Pauses a consumer: it gets no pushes until it is resumed. Its jobs wait and use no attempts.',
  resume: 'Resumes a paused consumer.',
  enable: 'Enables a consumer that was disabled because it failed for too long, and closes its breaker.',
}

export const consumerRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/webhooks',
    operationId: 'listWebhookConsumers',
    permission: 'webhook.read',
    summary: 'Lists the consumers of all channels with their state and figures.',
    tag: 'webhooks',
    dialect: v1,
    schema: {
      querystring: pageQuery(
        { channel: Type.Optional(id('Only consumers of this channel.')) },
        { default: 100, max: 1_000 },
      ),
      response: {
        200: Type.Object({
          consumers: Type.Array(ConsumerView, { description: 'The consumers of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query, caller }, _reply, context) => {
      const { channel, cursor, limit } = query
      const [afterNumber] = cursor === undefined ? [0] : readCursor(cursor, list, ['number'])
      const reports = await context.webhooks().deliveries.list({
        ...(channel !== undefined && { channelId: channel }),
        afterNumber,
        countMax: limit + 1,
      })
      const page = reports.slice(0, limit)
      const last = page.at(-1)
      const hasMore = reports.length > limit && last !== undefined
      return {
        consumers: page.map((report) => viewConsumer(report, isCallbackUrlShown(caller))),
        next_cursor: hasMore ? writeCursor(list, [last.counts.consumer.number]) : null,
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/webhooks/{channel}/{consumer}',
    operationId: 'getWebhookConsumer',
    errors: ['CONSUMER_NOT_FOUND'],
    permission: 'webhook.read',
    summary: 'Returns a consumer with its state and figures.',
    tag: 'webhooks',
    dialect: v1,
    schema: { params: ConsumerParams, response: { 200: ConsumerView } },
    handler: async ({ params, caller }, _reply, context) => {
      const report = await context.webhooks().deliveries.get(params.channel, params.consumer)
      return viewConsumer(report, isCallbackUrlShown(caller))
    },
  }),

  route({
    method: 'PATCH',
    path: '/api/v1/webhooks/{channel}/{consumer}',
    operationId: 'updateWebhookConsumer',
    errors: ['CONSUMER_NOT_FOUND', 'CONSUMER_CHANGED'],
    permission: 'webhook.write',
    summary: 'Changes the given delivery settings of a consumer.',
    tag: 'webhooks',
    dialect: v1,
    schema: {
      params: ConsumerParams,
      body: Type.Object({ settings: ConsumerSettingsSpec, reason: Reason }, { additionalProperties: false }),
      response: { 200: ConsumerView },
    },
    handler: async (request, _reply, context) => {
      const { settings, reason } = request.body
      const changes = readConsumerSettings(settings)
      const { deliveries } = context.webhooks()
      const attribution = createAttribution(request, reason)
      return viewConsumer(await deliveries.changeSettings(toName(request.params), changes, attribution), true)
    },
  }),

  ...(['pause', 'resume', 'enable'] as const).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/webhooks/{channel}/{consumer}/${action}`,
      operationId: `${action}WebhookConsumer`,
      errors: ['CONSUMER_NOT_FOUND', 'CONSUMER_CHANGED'],
      permission: 'webhook.write',
      summary: summaries[action],
      tag: 'webhooks',
      dialect: v1,
      isBodyOptional: true,
      schema: {
        params: ConsumerParams,
        body: Type.Object({ reason: Reason }, { additionalProperties: false }),
        response: { 200: ConsumerView },
      },
      handler: async (request, _reply, context) => {
        const attribution = createAttribution(request, request.body.reason)
        const report = await context.webhooks().deliveries[action](toName(request.params), attribution)
        return viewConsumer(report, true)
      },
    }),
  ),
]
