/** Attempts to push jobs, and test pushes. */
import { Buffer } from 'node:buffer'
import { Type } from 'typebox'
import { createJobIds } from '../../../core/webhook/job-id.ts'
import { toNewAttempt } from '../../../drivers/webhook/dispatch/job-pusher.ts'
import { KnownError } from '../../../errors.ts'
import type { AttemptsQuery } from '../../../storage/contract/deliveries.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { AttemptView, viewAttempt } from './attempt-view.ts'
import { ConsumerParams, toName } from './consumers.ts'

const list = 'webhook-attempts'
const Page = Type.Object({
  attempts: Type.Array(AttemptView, { description: 'The attempts of this page, newest first.' }),
  next_cursor: NextCursor,
})
const limits = { default: 50, max: 500 }
const defaultTestPayload = '{"test":true}'

export const attemptRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/webhooks/{channel}/{consumer}/attempts',
    operationId: 'listConsumerAttempts',
    errors: ['CONSUMER_NOT_FOUND'],
    permission: 'webhook.read',
    summary: 'Lists the attempts to push jobs of a consumer, newest first.',
    tag: 'webhooks',
    dialect: v1,
    schema: { params: ConsumerParams, querystring: pageQuery({}, limits), response: { 200: Page } },
    handler: async ({ params, query }, _reply, context) => {
      const { channel, consumer } = params
      const { stored } = await context.webhooks().deliveries.get(channel, consumer)
      return listPage(context, { consumer: stored.consumer.number }, query)
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/webhooks/{channel}/messages/{message}/attempts',
    operationId: 'listMessageAttempts',
    errors: ['MESSAGE_NOT_FOUND'],
    permission: 'webhook.read',
    summary: 'Lists the attempts to push a message to its consumers, newest first.',
    tag: 'webhooks',
    dialect: v1,
    schema: {
      params: Type.Object({
        channel: Type.String({ minLength: 1, maxLength: 255, description: 'Id of the channel.' }),
        message: Type.String({ minLength: 1, maxLength: 255, description: 'Id of the message.' }),
      }),
      querystring: pageQuery({}, limits),
      response: { 200: Page },
    },
    handler: async ({ params, query }, _reply, context) => {
      const message = await context.storage().getMessage(params.channel, params.message)
      if (message === null) {
        throw new KnownError(
          'MESSAGE_NOT_FOUND',
          `channel ${params.channel} has no message ${params.message}`,
        )
      }
      // The jobs of a message have consecutive ids, in the order of the fan-out.
      const nextId = createJobIds(message.number, message.dispatchedAt ?? message.receivedAt)
      const ids = message.jobs.map(() => nextId())
      const [from, to] = [ids[0], ids.at(-1)]
      if (from === undefined || to === undefined) return { attempts: [], next_cursor: null }
      return listPage(context, { jobs: { from, to } }, query)
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/webhooks/{channel}/{consumer}/test',
    operationId: 'testWebhookConsumer',
    errors: ['CONSUMER_NOT_FOUND', 'CONSUMER_NOT_PUSHED'],
    permission: 'webhook.write',
    summary: 'Pushes a test message to a consumer now, and returns the attempt. No job is created.',
    tag: 'webhooks',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: ConsumerParams,
      body: Type.Object(
        {
          text: Type.Optional(
            Type.String({ maxLength: 65_536, description: `The payload. Default: ${defaultTestPayload}` }),
          ),
          content_type: Type.Optional(
            Type.String({ maxLength: 255, description: 'The content type. Default: application/json.' }),
          ),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: AttemptView },
    },
    handler: async (request, _reply, context) => {
      const {
        text = defaultTestPayload,
        content_type: contentType = 'application/json',
        reason,
      } = request.body
      const { deliveries } = context.webhooks()
      const startedAt = context.clock.now()
      const test = { payload: Buffer.from(text), contentType }
      const attribution = createAttribution(request, reason)
      const attempt = await deliveries.test(toName(request.params), test, attribution)
      return viewAttempt(toNewAttempt(attempt, { consumer: 0, job: '', ordinal: 1, startedAt }))
    },
  }),
]

async function listPage(
  context: ApiContext,
  of: Pick<AttemptsQuery, 'consumer' | 'jobs'>,
  { cursor, limit }: Readonly<{ cursor?: string; limit: number }>,
) {
  const [beforeNumber] = cursor === undefined ? [undefined] : readCursor(cursor, list, ['number'])
  const found = await context.webhooks().deliveries.listAttempts({
    ...of,
    ...(beforeNumber !== undefined && { beforeNumber }),
    countMax: limit + 1,
  })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  const hasMore = found.length > limit && last !== undefined
  return { attempts: page.map(viewAttempt), next_cursor: hasMore ? writeCursor(list, [last.number]) : null }
}
