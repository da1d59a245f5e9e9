/** What the Queue API has no place for: priority, a key against doing it twice, longer leases, no more of them. */
import { Buffer } from 'node:buffer'
import { type Static, Type } from 'typebox'
import { ksuidProblem } from '../../../core/ksuid.ts'
import { partitionsMax } from '../../../core/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { NewItem } from '../../../storage/contract/items.ts'
import { queueNotFound } from '../../../storage/shared/queue-checks.ts'
import { route } from '../../http/route.ts'
import { storedAsBytes } from '../../http/validation/unstorable-text.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import { formatInstant, parseInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { durationOf } from './queue-spec.ts'

const params = Type.Object({ name: Type.String({ minLength: 1, maxLength: 512 }) })
const itemsMax = 1_000
const windowDefault = '24h'

const ItemSpec = Type.Object(
  {
    payload: Type.Optional(Type.String({ description: 'Bytes, as base64.' })),
    text: Type.Optional(
      Type.String({ ...storedAsBytes, description: 'Instead of payload: text, kept as UTF-8.' }),
    ),
    kind: Type.Optional(Type.String({ maxLength: 1_000 })),
    encoding: Type.Optional(Type.String({ maxLength: 1_000 })),
    reference: Type.Optional(Type.String({ maxLength: 2_000 })),
    key: Type.Optional(Type.String({ maxLength: 10_000, description: 'Bytes, as base64.' })),
    headers: Type.Optional(
      Type.Array(Type.Tuple([Type.String({ maxLength: 1_000 }), Type.String({ maxLength: 100_000 })]), {
        maxItems: 100,
        description: 'Name and value; values are bytes, as base64.',
      }),
    ),
    priority: Type.Optional(
      Type.Integer({ minimum: -1_000_000, maximum: 1_000_000, description: 'Higher goes first; default 0.' }),
    ),
    attempts_max: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 65_536,
        description: "Instead of the queue's, with the same meaning; 0, the default: the queue's.",
      }),
    ),
    available_at: Type.Optional(Type.String({ maxLength: 64, description: 'Not given out before then.' })),
  },
  { additionalProperties: false },
)

export const queueItemRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/items',
    permission: 'queue.produce',
    summary: 'Produces items, with priority, and once only when a key is given.',
    tag: 'queues',
    dialect: v1,
    isHot: true,
    schema: {
      params,
      body: Type.Object(
        {
          items: Type.Array(ItemSpec, { minItems: 1, maxItems: itemsMax }),
          idempotency_key: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 255,
              description:
                'The same key within the window stands for the same request: it is done once and answered alike. ' +
                'With other items it is refused.',
            }),
          ),
          idempotency_window: Type.Optional(Type.String({ maxLength: 32, default: windowDefault })),
        },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          partition: Type.Integer(),
          ids: Type.Array(Type.String()),
          is_repeat: Type.Boolean({ description: 'It was done by an earlier request with the same key.' }),
        }),
      },
    },
    handler: async ({ params: { name }, body }, _reply, context) => {
      const items = body.items.map(newItem)
      const { idempotency_key: key, idempotency_window: window = windowDefault } = body
      const once =
        key === undefined ? {} : { once: { key, windowUs: durationOf('idempotency_window', window, 1) } }
      const { partition, ids, isRepeat } = await context.engine().produce(name, items, once)
      return { partition, ids: [...ids], is_repeat: isRepeat }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/leases/extend',
    permission: 'queue.lease',
    summary: 'Extends leases from now on, all of them or none: the heartbeat of a long piece of work.',
    tag: 'queues',
    dialect: v1,
    isHot: true,
    schema: {
      params,
      body: Type.Object(
        {
          partition: Type.Integer({ minimum: 0, maximum: partitionsMax - 1 }),
          ids: Type.Array(Type.String({ maxLength: 100 }), { minItems: 1, maxItems: itemsMax }),
          lease: Type.Optional(
            Type.String({ maxLength: 32, description: "From now; default: the queue's lease time." }),
          ),
        },
        { additionalProperties: false },
      ),
      response: { 200: Type.Object({ lease_deadline: Type.String({ format: 'date-time' }) }) },
    },
    handler: async ({ params: { name }, body: { partition, ids, lease } }, _reply, context) => {
      checkIds(ids)
      const leaseUs = lease === undefined ? undefined : durationOf('lease', lease, 1)
      return { lease_deadline: formatInstant(await context.engine().extend(name, partition, ids, leaseUs)) }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/queues/{name}/leases/cancel',
    permission: 'queue.lease',
    summary:
      'Ends the lease call of a client that waits for items: it is answered now, with none or with those it just got.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params,
      body: Type.Object(
        { client_id: Type.String({ minLength: 1, description: 'As given in the lease call.' }) },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          is_cancelled: Type.Boolean({ description: 'False: no call of this client waits at this server.' }),
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

function newItem(spec: Static<typeof ItemSpec>): NewItem {
  if (spec.payload !== undefined && spec.text !== undefined) {
    throw new KnownError('BAD_REQUEST', 'items: give payload or text, not both')
  }
  return {
    payload: spec.text === undefined ? bytesOf('payload', spec.payload ?? '') : Buffer.from(spec.text),
    ...(spec.kind !== undefined && { kind: spec.kind }),
    ...(spec.encoding !== undefined && { encoding: spec.encoding }),
    ...(spec.reference !== undefined && { reference: spec.reference }),
    ...(spec.key !== undefined && { key: bytesOf('key', spec.key) }),
    ...(spec.headers !== undefined && {
      headers: spec.headers.map(([name, value]) => [name, bytesOf('headers', value)] as const),
    }),
    ...(spec.priority !== undefined && { priority: spec.priority }),
    ...(spec.attempts_max !== undefined && { attemptsMax: spec.attempts_max }),
    ...(spec.available_at !== undefined && { availableAt: instantOf(spec.available_at) }),
  }
}

/** What cannot be an id is not looked for. */
function checkIds(ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    if (ksuidProblem(id) === undefined) continue
    throw new KnownError('ITEM_ID_INVALID', `ids[${index}]: ${JSON.stringify(id)} is not the id of an item`)
  }
}

function bytesOf(field: string, text: string): Uint8Array {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw new KnownError('BAD_REQUEST', `items: ${field} is not base64`)
  return bytes
}

function instantOf(text: string): number {
  const instant = parseInstant(text)
  if (instant !== undefined) return instant
  throw new KnownError('BAD_REQUEST', `items: available_at ${JSON.stringify(text)} is not an RFC 3339 time`)
}
