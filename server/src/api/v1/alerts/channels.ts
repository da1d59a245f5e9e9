/** Channels of alerts: those of redrive.yaml, and those that people create. Secrets are never shown. */
import { type Static, Type } from 'typebox'
import {
  type ChannelKind,
  channelKinds,
  decodeTarget,
  type FieldValues,
  findChannelNameProblem,
  listFields,
} from '../../../core/alerts/channel.ts'
import { systemNamespace } from '../../../core/items/queue.ts'
import { channelSources, type ListedChannel } from '../../../drivers/notify/channels.ts'
import { KnownError } from '../../../errors.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { type Caller, requirePermission } from '../../http/caller.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { Reason } from '../values/reason.ts'
import { nullable } from '../values/schemas.ts'

/** Longer values are refused by `decodeTarget` with a better message. */
const text = (description: string) => Type.Optional(Type.String({ maxLength: 100_000, description }))

const ChannelSettings = component(
  'AlertChannelSettings',
  Type.Object(
    {
      url: text('The address of the service. Secret for slack, teams and discord.'),
      secret: text('webhook: the signing secret, whsec_ and base64.'),
      routing_key: text('pagerduty: the integration key of the service.'),
      api_key: text('opsgenie: the key of the API.'),
      api_key_header: text('opsgenie: the header with the key. Default Authorization, with GenieKey.'),
      bot_token: text('telegram: the token of the bot.'),
      chat_id: text('telegram: the chat.'),
      host: text('email: the SMTP server.'),
      port: Type.Optional(Type.Integer({ description: 'email: the port. Default 587.' })),
      tls: text('email: starttls (default), tls or none. Certificates are always checked.'),
      tls_ca: text('email: certificates of authorities in PEM, instead of those of the system.'),
      user: text('email: the name of the user.'),
      password: text('email: the password of the user.'),
      from: text('email: the address of the sender.'),
      to: Type.Optional(
        Type.Array(Type.String({ maxLength: 1_000 }), {
          maxItems: 100,
          description: 'email: the recipients.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
)

const ChannelView = component(
  'AlertChannel',
  Type.Object({
    name: Type.String({ description: 'The name of the channel.' }),
    namespace: Type.String({ description: 'The namespace of the channel.' }),
    kind: Type.Enum(channelKinds, { description: 'The service.' }),
    source: Type.Enum(channelSources, {
      description:
        'api: created through the API. configuration: part of the settings of the server, and cannot be ' +
        'changed through the API.',
    }),
    settings: ChannelSettings,
    secrets_set: Type.Array(Type.String(), {
      description: 'The names of the secret fields that have a value.',
    }),
  }),
)

const ChannelSpec = Type.Object(
  {
    namespace: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: 'Default _system. It never changes.' }),
    ),
    kind: Type.Enum(channelKinds, { description: 'The service.' }),
    settings: ChannelSettings,
    reason: Reason,
  },
  { additionalProperties: false },
)

const ChannelParams = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 100, description: 'The name of the channel.' }),
})

const TestResult = Type.Object({
  is_delivered: Type.Boolean({ description: 'Whether the service accepted the message.' }),
  latency_ms: Type.Number({ description: 'How long it took.' }),
  status: nullable(Type.Integer(), 'The HTTP status or SMTP reply code; null: no answer arrived.'),
  error: nullable(
    Type.Object({
      code: Type.String({ description: 'A short code, such as http_403.' }),
      message: Type.String({ description: 'The problem as a sentence.' }),
      response: nullable(Type.String(), 'The beginning of the answer of the service.'),
    }),
    'Why it failed; null: it did not.',
  ),
})

export const alertChannelRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/alerts/channels',
    operationId: 'listAlertChannels',
    permission: 'alert.read',
    summary: 'Lists the channels of alerts by name, without their secrets.',
    tag: 'alerts',
    dialect: v1,
    schema: {
      response: {
        200: Type.Object({ channels: Type.Array(ChannelView, { description: 'The channels.' }) }),
      },
    },
    handler: async ({ caller }, _reply, { notifier }) => {
      const channels = await notifier.channels.list()
      return {
        channels: channels.filter(({ namespace }) => caller.may('alert.read', namespace)).map(viewChannel),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/alerts/channels/{name}',
    operationId: 'getAlertChannel',
    errors: ['ALERT_CHANNEL_NOT_FOUND'],
    permission: 'alert.read',
    summary: 'Returns one channel of alerts, without its secrets.',
    tag: 'alerts',
    dialect: v1,
    schema: { params: ChannelParams, response: { 200: ChannelView } },
    handler: async ({ params, caller }, _reply, context) =>
      viewChannel(await findChannel(params.name, caller, 'alert.read', context)),
  }),

  route({
    method: 'PUT',
    path: '/api/v1/alerts/channels/{name}',
    operationId: 'putAlertChannel',
    errors: [
      'ALERT_CHANNEL_CONFIGURED',
      'ALERT_CHANNEL_EXISTS',
      'ALERT_CHANNEL_INVALID',
      'ALERT_CONFIG_CHANGED',
      'ALERT_CONFIGS_FULL',
    ],
    permission: 'alert.write',
    summary:
      'Creates or replaces a channel of alerts. Secret fields that are left out keep their values, unless the channel gets another kind or address.',
    tag: 'alerts',
    dialect: v1,
    schema: { params: ChannelParams, body: ChannelSpec, response: { 200: ChannelView } },
    handler: async (request, _reply, context) => {
      const { name } = request.params
      const { kind, settings, namespace: given, reason } = request.body
      const problem = findChannelNameProblem(name)
      if (problem !== undefined) throw new KnownError('BAD_REQUEST', problem)
      const { channels } = context.notifier
      const existing = await channels.get(name)
      const isVisible = existing !== null && request.caller.may('alert.write', existing.namespace)
      const namespace = given ?? (isVisible ? existing.namespace : systemNamespace)
      requirePermission(request.caller, 'alert.write', namespace)
      if (existing !== null && existing.namespace !== namespace)
        throw new KnownError('ALERT_CHANNEL_EXISTS', `a channel ${name} exists in another namespace`)
      const kept = existing?.kind === kind ? await keepSecrets(existing, settings, context) : {}
      refuseReferences(kind, settings)
      const decoded = decodeTarget(kind, { ...kept, ...settings })
      if ('problems' in decoded) {
        throw new InvalidRequest(
          decoded.problems.map(({ field, message }) => ({ field: `body.settings.${field}`, message })),
        )
      }
      await channels.put({ name, namespace, target: decoded.target }, createAttribution(request, reason))
      return viewChannel(await findChannel(name, request.caller, 'alert.write', context))
    },
  }),

  route({
    method: 'DELETE',
    path: '/api/v1/alerts/channels/{name}',
    operationId: 'deleteAlertChannel',
    errors: ['ALERT_CHANNEL_NOT_FOUND', 'ALERT_CHANNEL_CONFIGURED', 'ALERT_CONFIG_CHANGED'],
    permission: 'alert.write',
    summary: 'Deletes a channel of alerts. Notifications that still wait for it become dead letters.',
    tag: 'alerts',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: ChannelParams,
      body: Type.Object({ reason: Reason }, { additionalProperties: false }),
      response: { 200: Type.Object({ deleted: Type.Boolean({ description: 'Always true.' }) }) },
    },
    handler: async (request, _reply, context) => {
      const channel = await findChannel(request.params.name, request.caller, 'alert.write', context)
      await context.notifier.channels.remove(channel, createAttribution(request, request.body.reason))
      return { deleted: true }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/alerts/channels/{name}/test',
    operationId: 'testAlertChannel',
    errors: ['ALERT_CHANNEL_NOT_FOUND', 'ALERT_CHANNEL_INVALID'],
    permission: 'alert.write',
    summary: 'Sends a test message to a channel now, and returns the result.',
    tag: 'alerts',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: ChannelParams,
      body: Type.Object({}, { additionalProperties: false }),
      response: { 200: TestResult },
    },
    handler: async ({ params, caller }, _reply, context) => {
      await findChannel(params.name, caller, 'alert.write', context)
      const channel = await context.notifier.channels.find(params.name)
      if (channel === null) throw createNotFound(params.name)
      const { isDelivered, latencyMs, status, error } = await context.notifier.sendTest(channel)
      return { is_delivered: isDelivered, latency_ms: latencyMs, status, error }
    },
  }),
]

/** A channel of another namespace does not exist for the caller. */
async function findChannel(
  name: string,
  caller: Caller,
  permission: 'alert.read' | 'alert.write',
  { notifier }: Pick<ApiContext, 'notifier'>,
): Promise<ListedChannel> {
  const channel = await notifier.channels.get(name)
  if (channel !== null && caller.may(permission, channel.namespace)) return channel
  throw createNotFound(name)
}

function createNotFound(name: string): KnownError {
  return new KnownError('ALERT_CHANNEL_NOT_FOUND', `there is no channel ${JSON.stringify(name)}`)
}

/** Reading a file or a variable of the server is up to its configuration: a client must not choose it. */
function refuseReferences(kind: ChannelKind, settings: FieldValues): void {
  const found = listFields(kind).filter(
    ({ name, isSecret }) => isSecret && /^(?:file|env|vault):/.test(String(settings[name])),
  )
  if (found.length === 0) return
  const message = 'must be the secret itself: references are for alerts.channels in redrive.yaml'
  throw new InvalidRequest(found.map(({ name }) => ({ field: `body.settings.${name}`, message })))
}

/** A secret must not be sent to an address that somebody chose who does not know it. */
const addressFields = ['url', 'host', 'port', 'tls', 'tls_ca', 'user', 'api_key_header'] as const

async function keepSecrets(
  { name, kind, source, fields }: ListedChannel,
  settings: Static<typeof ChannelSettings>,
  { notifier }: Pick<ApiContext, 'notifier'>,
): Promise<FieldValues> {
  if (source === 'configuration') return {}
  const secret = new Set(listFields(kind).flatMap((field) => (field.isSecret ? [field.name] : [])))
  const stored = await notifier.channels.find(name)
  const values = stored?.target as FieldValues | undefined
  const decoded = decodeTarget(kind, { ...values, kind: undefined, ...settings })
  const target = 'target' in decoded ? (decoded.target as FieldValues) : {}
  const isMoved = addressFields.some(
    (field) => !secret.has(field) && (fields[field] ?? null) !== (target[field] ?? null),
  )
  if (isMoved || values === undefined) return {}
  return Object.fromEntries([...secret].flatMap((field) => (values[field] ? [[field, values[field]]] : [])))
}

function viewChannel(channel: ListedChannel): Static<typeof ChannelView> {
  const { name, namespace, kind, source, fields, secretFields } = channel
  // The fields were read by the decoder of the kind.
  const settings = fields as Static<typeof ChannelSettings>
  return { name, namespace, kind, source, settings, secrets_set: [...secretFields] }
}
