/**
 * Calls that the Queue API does not have: priorities, idempotent produce, extending and cancelling leases.
 */
import { type Static, Type } from 'typebox'
import { elementTexts, fieldTexts, textAt } from '../../../core/json-text.ts'
import { findKsuidProblem } from '../../../core/ksuid.ts'
import { partitionsMax } from '../../../core/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { NewItem } from '../../../storage/contract/items.ts'
import { queueNotFound } from '../../../storage/shared/queue-checks.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { readJsonText } from '../../http/wire/parse-json.ts'
import { formatInstant, parseInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import {
  HeaderSpec,
  keySpec,
  payloadSpec,
  readContent,
  readHeaders,
  readKey,
} from '../values/content-spec.ts'
import { duration, parseDurationField } from '../values/duration.ts'
import { QueueParams, time } from '../values/schemas.ts'

const itemsMax = 1_000
const windowDefault = '24h'

const ItemSpec = component(
  'ItemSpec',
  Type.Object(
    {
      payload: Type.Optional(payloadSpec('The payload. Default: empty.')),
      kind: Type.Optional(Type.String({ maxLength: 1_000, description: 'Type of the item, for workers.' })),
      encoding: Type.Optional(
        Type.String({ maxLength: 1_000, description: 'Encoding of the payload, for workers.' }),
      ),
      reference: Type.Optional(Type.String({ maxLength: 2_000, description: 'A text of your choice.' })),
      key: Type.Optional(keySpec('The message key. Default: no key.')),
      headers: Type.Optional(
        Type.Array(HeaderSpec, { maxItems: 100, description: 'The headers of the message, in order.' }),
      ),
      priority: Type.Optional(
        Type.Integer({
          minimum: -1_000_000,
          maximum: 1_000_000,
          description: 'Items with a higher priority are leased first. Default 0.',
        }),
      ),
      attempts_max: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 65_536,
          description: 'Replaces attempts_max of the queue for this item. Default 0: the value of the queue.',
        }),
      ),
      available_at: Type.Optional(
        describedWith(
          { format: 'date-time' },
          Type.String({ maxLength: 64, description: 'The item is not leased before this RFC 3339 time.' }),
        ),
      ),
    },
    { additionalProperties: false },
  ),
)

export const queueItemRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/items',
    operationId: 'produceItems',
    errors: [
      'QUEUE_NOT_FOUND',
      'IDEMPOTENCY_KEY_REUSED',
      'CALL_TIMEOUT',
      'QUEUE_OVERLOADED',
      'QUEUE_SHUTTING_DOWN',
    ],
    permission: 'queue.produce',
    summary: 'Produces items. With an idempotency key a repeated request is executed once.',
    tag: 'queues',
    dialect: v1,
    isHot: true,
    schema: {
      params: QueueParams,
      body: Type.Object(
        {
          items: Type.Array(ItemSpec, {
            minItems: 1,
            maxItems: itemsMax,
            description: 'The items, which are stored in order in one partition: all or none.',
          }),
          idempotency_key: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 255,
              description:
                'A request with the same key within the window is executed once and gets the same answer. ' +
                'The same key with other items is refused.',
            }),
          ),
          idempotency_window: Type.Optional(
            Type.String({
              maxLength: 32,
              default: windowDefault,
              description: 'How long the key is remembered.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          partition: Type.Integer({ description: 'The partition of the items.' }),
          ids: Type.Array(Type.String(), { description: 'Ids of the items, in the order of the request.' }),
          is_repeat: Type.Boolean({ description: 'An earlier request with the same key produced them.' }),
        }),
      },
    },
    handler: async ({ params: { name }, body }, _reply, context) => {
      const readWritten = createItemTexts(body)
      const items = body.items.map((item, index) => readItem(item, index, readWritten))
      const { idempotency_key: key, idempotency_window: window = windowDefault } = body
      const once =
        key === undefined
          ? {}
          : { once: { key, windowUs: parseDurationField('idempotency_window', window, 1) } }
      const { partition, ids, isRepeat } = await context.engine().produce(name, items, once)
      return { partition, ids: [...ids], is_repeat: isRepeat }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/leases/extend',
    operationId: 'extendLeases',
    errors: [
      'QUEUE_NOT_FOUND',
      'PARTITION_NOT_FOUND',
      'ITEM_ID_INVALID',
      'ITEM_NOT_FOUND',
      'ITEM_NOT_LEASED',
      'CALL_TIMEOUT',
      'QUEUE_OVERLOADED',
      'QUEUE_SHUTTING_DOWN',
    ],
    permission: 'queue.lease',
    summary: 'Extends leases, all or none. A worker calls it repeatedly during long work.',
    tag: 'queues',
    dialect: v1,
    isHot: true,
    schema: {
      params: QueueParams,
      body: Type.Object(
        {
          partition: Type.Integer({
            minimum: 0,
            maximum: partitionsMax - 1,
            description: 'The partition of the items.',
          }),
          ids: Type.Array(Type.String({ maxLength: 100 }), {
            minItems: 1,
            maxItems: itemsMax,
            description: 'Ids of leased items.',
          }),
          lease_timeout: Type.Optional(
            duration('How long the leases last from now on. Default: lease_timeout of the queue.'),
          ),
        },
        { additionalProperties: false },
      ),
      response: { 200: Type.Object({ lease_deadline: time('When the leases end.') }) },
    },
    handler: async ({ params: { name }, body: { partition, ids, lease_timeout } }, _reply, context) => {
      checkIds(ids)
      const leaseUs =
        lease_timeout === undefined ? undefined : parseDurationField('lease_timeout', lease_timeout, 1)
      return { lease_deadline: formatInstant(await context.engine().extend(name, partition, ids, leaseUs)) }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/leases/cancel',
    operationId: 'cancelLease',
    errors: ['QUEUE_NOT_FOUND'],
    permission: 'queue.lease',
    summary:
      'Cancels the waiting lease call of a client. The call is answered now, possibly with items that it just got.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: QueueParams,
      body: Type.Object(
        { client_id: Type.String({ minLength: 1, description: 'client_id of the lease call.' }) },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          is_cancelled: Type.Boolean({
            description: 'False if no lease call of this client waits at this server.',
          }),
        }),
      },
    },
    handler: async ({ params: { name }, body: { client_id } }, _reply, context) => {
      const isCancelled = context.leaseCalls.cancel(name, client_id)
      if (!isCancelled && (await context.engine().getQueue(name)) === null) throw queueNotFound(name)
      return { is_cancelled: isCancelled }
    },
  }),
]

/**
 * Returns a function that reads the JSON text of an item as it is written in the request. The body is split
 * only if an item has a JSON payload.
 */
function createItemTexts(body: object): (index: number) => string {
  let texts: readonly string[] | undefined
  return (index) => {
    texts ??= elementTexts(new Map(fieldTexts(readJsonText(body))).get('items') ?? '[]')
    return texts[index] ?? '{}'
  }
}

function readItem(
  spec: Static<typeof ItemSpec>,
  index: number,
  readWritten: (index: number) => string,
): NewItem {
  const field = `body.items[${index}]`
  const jsonText = () => textAt(readWritten(index), ['payload', 'json']) ?? 'null'
  return {
    payload:
      spec.payload === undefined ? new Uint8Array() : readContent(`${field}.payload`, spec.payload, jsonText),
    ...(spec.kind !== undefined && { kind: spec.kind }),
    ...(spec.encoding !== undefined && { encoding: spec.encoding }),
    ...(spec.reference !== undefined && { reference: spec.reference }),
    ...(spec.key !== undefined && { key: readKey(`${field}.key`, spec.key) }),
    ...(spec.headers !== undefined && { headers: readHeaders(`${field}.headers`, spec.headers) }),
    ...(spec.priority !== undefined && { priority: spec.priority }),
    ...(spec.attempts_max !== undefined && { attemptsMax: spec.attempts_max }),
    ...(spec.available_at !== undefined && {
      availableAt: parseAvailableAt(`${field}.available_at`, spec.available_at),
    }),
  }
}

/** Malformed ids are refused before the store is asked. */
function checkIds(ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    if (findKsuidProblem(id) === undefined) continue
    throw new KnownError('ITEM_ID_INVALID', `ids[${index}]: ${JSON.stringify(id)} is not an item id`)
  }
}

function parseAvailableAt(field: string, text: string): number {
  const instant = parseInstant(text)
  if (instant !== undefined) return instant
  throw new InvalidRequest([{ field, message: 'is not an RFC 3339 time' }])
}
