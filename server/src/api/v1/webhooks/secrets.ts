/** The signing secret of a consumer. No other answer, list, audit row or log line contains it. */
import { type Static, Type } from 'typebox'
import { usPerSecond } from '../../../core/time/instant.ts'
import { rotationOverlapUs, type SigningSecrets } from '../../../core/webhook/signature.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { duration, parseDurationField } from '../values/duration.ts'
import { Reason } from '../values/reason.ts'
import { formatTimeOrNull, nullableTime } from '../values/schemas.ts'
import { ConsumerParams, toName } from './consumers.ts'

const SecretView = component(
  'SigningSecret',
  Type.Object({
    secret: Type.String({ description: 'The secret that signs pushes: whsec_ and base64.' }),
    previous_valid_until: nullableTime('Until when the previous secret signs, too; null: it does not.'),
  }),
)

const overlapDaysMax = 30

export const secretRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/webhooks/{channel}/{consumer}/secret',
    operationId: 'getWebhookSecret',
    errors: ['CONSUMER_NOT_FOUND'],
    permission: 'webhook.write',
    summary: 'Returns the secret that signs the pushes to a consumer.',
    tag: 'webhooks',
    dialect: v1,
    schema: { params: ConsumerParams, response: { 200: SecretView } },
    handler: async ({ params }, reply, context) => {
      reply.header('cache-control', 'no-store')
      return viewSecret(await context.webhooks().deliveries.readSecrets(toName(params)))
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/webhooks/{channel}/{consumer}/secret/rotate',
    operationId: 'rotateWebhookSecret',
    errors: ['CONSUMER_NOT_FOUND', 'CONSUMER_CHANGED'],
    permission: 'webhook.write',
    summary: 'Creates a new secret. The previous one signs, too, until the overlap ends.',
    tag: 'webhooks',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: ConsumerParams,
      body: Type.Object(
        {
          overlap: Type.Optional(duration('How long both secrets sign. Default 24h, at most 720h.')),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: SecretView },
    },
    handler: async (request, reply, context) => {
      const { overlap, reason } = request.body
      const overlapUs =
        overlap === undefined
          ? rotationOverlapUs
          : Math.min(parseDurationField('body.overlap', overlap, 0), overlapDaysMax * 86_400 * usPerSecond)
      const attribution = createAttribution(request, reason)
      reply.header('cache-control', 'no-store')
      return viewSecret(
        await context.webhooks().deliveries.rotateSecret(toName(request.params), overlapUs, attribution),
      )
    },
  }),
]

function viewSecret({ current, previous }: SigningSecrets): Static<typeof SecretView> {
  return { secret: current, previous_valid_until: formatTimeOrNull(previous?.validUntil) }
}
