/** Broadcasts: the body is the payload, and headers have everything else. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type Header, payloadBytesMax } from '../../core/items/item.ts'
import { findTextFault } from '../../core/text/storable-text.ts'
import { addDuration } from '../../core/time/instant.ts'
import type { BroadcastFault, BroadcastRefusal } from '../../core/webhook/broadcast.ts'
import { type ErrorCode, KnownError } from '../../errors.ts'
import type { ApiContext } from '../context.ts'
import { traceRequestHeaders, withTrace } from '../http/read-trace.ts'
import { parseInstant } from '../http/wire/wire-time.ts'
import { readContentType, webhookApi } from './dialect.ts'
import { ChannelParams, idMax, readBytes, readHeader, toPath } from './requests.ts'
import { webhookRoute } from './webhook-route.ts'

const header = (description: string) => Type.Optional(Type.String({ description }))

export const broadcastRoute = webhookRoute({
  method: 'POST',
  path: '/channel/{channelId}/broadcast',
  operationId: 'broadcastWebhookMessage',
  summary: 'Broadcasts a message to all consumers of a channel. It is stored durably before the answer.',
  tag: 'webhooks',
  dialect: webhookApi,
  permission: 'webhook.write',
  isHot: true,
  bodyBytesMax: payloadBytesMax,
  errors: [
    'CHANNEL_NOT_FOUND',
    'PRODUCER_UNKNOWN',
    'TOKEN_REFUSED',
    'SCHEDULE_TOO_EARLY',
    'MESSAGE_ID_TAKEN',
  ],
  openapi: {
    body: {
      description: 'The payload: 1 byte to 16 MiB of UTF-8 text.',
      // Generators of clients know the first type, and skip an operation that has only the second.
      content: { 'application/octet-stream': { schema: Type.String() }, '*/*': { schema: Type.String() } },
    },
    headers: Type.Object({
      'X-Broker-Channel-Token': Type.String({ description: 'Token of the channel.' }),
      'X-Broker-Producer-ID': Type.String({ description: 'Id of the producer.' }),
      'X-Broker-Producer-Token': Type.String({ description: 'Token of the producer.' }),
      'X-Broker-Message-ID': header('Id of the message, unique in the channel. Default: a new xid.'),
      'X-Broker-Message-Priority': header('Whole number; messages with a higher one go first. Default: 0.'),
      'X-Broker-Metadata-Headers': header('Names of headers of this request to store with the message.'),
      'X-Broker-Scheduled-For': header('RFC 3339 time at which the message is delivered.'),
      ...traceRequestHeaders,
    }),
  },
  schema: {
    params: ChannelParams,
    body: Type.Any(),
    response: { 201: Type.Null({ description: 'Stored. The header Location has the link to the message.' }) },
  },
  handler: async (request, reply, context) => {
    const { channelId } = request.params
    const { broker } = context.webhooks()
    const given = readHeader(request, 'x-broker-message-id') || null
    const isUsable = given === null || (given.length <= idMax && findTextFault(given) === undefined)
    const id = given !== null && isUsable ? given : broker.createId()
    const payload = readBytes(request)
    const { dueAt, fault } = readSchedule(request, context)
    const accepted = await broker.broadcast({
      channelId,
      channelToken: readHeader(request, 'x-broker-channel-token'),
      producerId: readHeader(request, 'x-broker-producer-id'),
      producerToken: readHeader(request, 'x-broker-producer-token'),
      fault: findPayloadFault(payload) ?? fault ?? (isUsable ? null : 'id-unusable'),
      id,
      contentType: readContentType(request) ?? 'application/octet-stream',
      priority: readPriority(request),
      headers: readMetadata(request),
      ...withTrace(request),
      payload,
      dueAt,
    })
    if (!accepted.isAccepted) throw refuse(accepted.refusal, request, channelId, id)
    const kind = dueAt === null ? 'message' : 'scheduled-message'
    return reply
      .code(201)
      .header('Location', toPath('channel', channelId, kind, id))
      .send()
  },
})

const priorityMax = 2 ** 31 - 1

function readPriority(request: FastifyRequest): number {
  const text = readHeader(request, 'x-broker-message-priority')?.trim() ?? ''
  return /^[+-]?\d{1,300}$/.test(text) ? Math.min(Math.abs(Number(text)), priorityMax) : 0
}

/** The named headers that the request has, with their bytes as they were received. */
function readMetadata(request: FastifyRequest): Header[] {
  const names = (readHeader(request, 'x-broker-metadata-headers') ?? '').split(',').map((name) => name.trim())
  const stored = new Map<string, Header>()
  for (const name of names) {
    // A header named `__proto__` or `constructor` is not a property of every object.
    const value = Object.hasOwn(request.headers, name.toLowerCase())
      ? request.headers[name.toLowerCase()]
      : undefined
    const text = Array.isArray(value) ? value.join(', ') : value
    if (name === '' || text === undefined || text === '') continue
    stored.set(name.toLowerCase(), [name, Uint8Array.from(Buffer.from(text, 'latin1'))])
  }
  return [...stored.values()]
}

function findPayloadFault(payload: Uint8Array): BroadcastFault | null {
  if (payload.byteLength === 0) return 'payload-empty'
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(payload)
    return null
  } catch {
    return 'payload-unreadable'
  }
}

type Schedule = Readonly<{ dueAt: number | null; fault: BroadcastFault | null }>

function readSchedule(request: FastifyRequest, { clock, webhookOptions }: ApiContext): Schedule {
  const text = readHeader(request, 'x-broker-scheduled-for')
  if (text === null || text === '') return { dueAt: null, fault: null }
  const dueAt = parseInstant(text.trim())
  if (dueAt === undefined) return { dueAt: null, fault: 'date-unreadable' }
  const isEarly = dueAt < addDuration(clock.now(), webhookOptions.scheduleDelayUsMin)
  return { dueAt, fault: isEarly ? 'date-early' : null }
}

function refuse(
  refusal: BroadcastRefusal,
  request: FastifyRequest,
  channelId: string,
  id: string,
): KnownError {
  const producerId = readHeader(request, 'x-broker-producer-id') ?? ''
  const errors: Readonly<Record<BroadcastRefusal, readonly [ErrorCode, string]>> = {
    'channel-missing': ['CHANNEL_NOT_FOUND', `channel ${channelId} does not exist`],
    'channel-token': ['TOKEN_REFUSED', `the token of channel ${channelId} is missing or wrong`],
    'producer-missing': ['PRODUCER_UNKNOWN', `producer ${producerId} is missing or not registered`],
    'producer-token': ['TOKEN_REFUSED', `the token of producer ${producerId} is missing or wrong`],
    'payload-empty': ['BAD_REQUEST', 'the payload is empty'],
    'payload-unreadable': ['BAD_REQUEST', 'the payload is not UTF-8 text'],
    'date-unreadable': ['BAD_REQUEST', 'X-Broker-Scheduled-For is not a time in RFC 3339'],
    'date-early': [
      'SCHEDULE_TOO_EARLY',
      `X-Broker-Scheduled-For is ${readHeader(request, 'x-broker-scheduled-for')}, which is too early`,
    ],
    'id-unusable': ['BAD_REQUEST', `X-Broker-Message-ID has more than ${idMax} characters or is not text`],
    'id-taken': ['MESSAGE_ID_TAKEN', `channel ${channelId} has a message with the id ${id} already`],
  }
  const [code, sentence] = errors[refusal]
  return new KnownError(code, sentence)
}
