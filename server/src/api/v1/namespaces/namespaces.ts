/** Routes of namespaces with their quotas. `/v1/namespaces.*` creates and deletes them. */
import { type Static, Type } from 'typebox'
import type { Namespace, Quota } from '../../../core/access/records.ts'
import { systemNamespace } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { Usage } from '../../../storage/contract/counts.ts'
import { createAttribution } from '../../http/attribution.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { v1 } from '../dialect.ts'
import { NextCursor, pageQuery, readCursor, writeCursor } from '../values/cursor.ts'
import { Reason } from '../values/reason.ts'
import { nullable } from '../values/schemas.ts'

const list = 'namespaces'

const limit = (description: string, maximum: number) =>
  Type.Union([Type.Integer({ minimum: 0, maximum }), Type.Null()], { description })

const quotaFields = {
  queues_max: limit('The number of queues; null: no limit.', 1_000_000),
  items_max: limit(
    'The number of items in all queues, in every state, without the archive; null: no limit.',
    1_000_000_000_000,
  ),
  bytes_max: limit('The bytes of the payloads of these items; null: no limit.', 1_000_000_000_000_000),
  requests_per_second_max: limit(
    'The requests per second at each server process; null: no limit.',
    1_000_000,
  ),
}

const NamespaceView = component(
  'Namespace',
  Type.Object({
    name: Type.String({ description: 'Name of the namespace.' }),
    description: Type.String({ description: 'A text of your choice.' }),
    quota: Type.Object(quotaFields, { description: 'The limits of the namespace.' }),
  }),
)
const UsedNamespaceView = component(
  'UsedNamespace',
  Type.Object({
    ...NamespaceView.properties,
    usage: Type.Object(
      {
        queues: Type.Integer({ description: 'The number of queues.' }),
        items: Type.Integer({ description: 'The number of items in all queues.' }),
        bytes: nullable(
          Type.Integer(),
          'The bytes of the payloads of these items; null: not read, because there is no quota of bytes.',
        ),
      },
      { description: 'The part of the store that the namespace uses now.' },
    ),
  }),
)
const NamespaceParams = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 256, description: 'Name of the namespace.' }),
})

export const namespaceRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/namespaces',
    operationId: 'listNamespaces',
    permission: 'queue.list',
    summary: 'Lists the namespaces of the caller with their quotas, in byte order of their names.',
    tag: 'queues',
    dialect: v1,
    schema: {
      querystring: pageQuery({}, { default: 100, max: 1_000 }),
      response: {
        200: Type.Object({
          namespaces: Type.Array(NamespaceView, { description: 'The namespaces of this page.' }),
          next_cursor: NextCursor,
        }),
      },
    },
    handler: async ({ query: { cursor, limit: countMax }, caller }, _reply, context) => {
      const [after] = cursor === undefined ? [] : readCursor(cursor, list, ['string'])
      const { namespaces } = context.access()
      // Reads two more: one shows whether a next page exists, and `from` includes the name itself.
      const found = await namespaces.list({
        ...(after !== undefined && { from: after }),
        countMax: countMax + 2,
      })
      const others = found.filter(({ name }) => name !== after)
      const page = others.slice(0, countMax)
      const last = others.length > countMax ? page.at(-1) : undefined
      return {
        namespaces: page.filter(({ name }) => caller.may('queue.list', name)).map(viewNamespace),
        next_cursor: last === undefined ? null : writeCursor(list, [last.name]),
      }
    },
  }),

  route({
    method: 'GET',
    path: '/api/v1/namespaces/{name}',
    operationId: 'getNamespace',
    errors: ['NAMESPACE_NOT_FOUND'],
    permission: 'queue.list',
    summary: 'Returns a namespace with its quota and the part of it that is in use.',
    tag: 'queues',
    dialect: v1,
    schema: { params: NamespaceParams, response: { 200: UsedNamespaceView } },
    handler: async ({ params: { name }, caller }, _reply, context) => {
      if (!caller.may('queue.list', name)) throw createNotFoundError(name)
      const namespace = await context.access().namespaces.get(name)
      const isWithBytes = namespace.quota?.bytesMax !== undefined
      const usage = await context.storage().readUsage({ namespace: name, isWithBytes })
      return viewUsed(namespace, usage)
    },
  }),

  route({
    method: 'PUT',
    path: '/api/v1/namespaces/{name}/quota',
    operationId: 'setNamespaceQuota',
    errors: ['NAMESPACE_NOT_FOUND', 'ACCESS_CHANGED'],
    permission: 'namespace.update',
    summary:
      'Replaces the quota of a namespace. It limits what is added from now on: nothing that exists is removed. ' +
      'Omitted fields have no limit. Effective on every server within two seconds.',
    tag: 'queues',
    dialect: v1,
    schema: {
      params: NamespaceParams,
      body: Type.Object(
        {
          queues_max: Type.Optional(quotaFields.queues_max),
          items_max: Type.Optional(quotaFields.items_max),
          bytes_max: Type.Optional(quotaFields.bytes_max),
          requests_per_second_max: Type.Optional(quotaFields.requests_per_second_max),
          reason: Reason,
        },
        { additionalProperties: false },
      ),
      response: { 200: NamespaceView },
    },
    handler: async (request, _reply, context) => {
      const { name } = request.params
      if (name === systemNamespace) {
        const message = `is ${systemNamespace}, which has no quota: it belongs to no tenant`
        throw new InvalidRequest([{ field: 'params.name', message }])
      }
      const { reason, ...limits } = request.body
      const { namespaces } = context.access()
      await namespaces.setQuota(name, readQuota(limits), createAttribution(request, reason))
      return viewNamespace(await namespaces.get(name))
    },
  }),
]

type QuotaView = Static<typeof NamespaceView>['quota']

function readQuota(spec: Partial<QuotaView>): Quota {
  const { queues_max, items_max, bytes_max, requests_per_second_max } = spec
  return {
    ...(queues_max != null && { queuesMax: queues_max }),
    ...(items_max != null && { itemsMax: items_max }),
    ...(bytes_max != null && { bytesMax: bytes_max }),
    ...(requests_per_second_max != null && { requestsPerSecondMax: requests_per_second_max }),
  }
}

function viewNamespace({ name, description, quota = {} }: Namespace): Static<typeof NamespaceView> {
  return {
    name,
    description,
    quota: {
      queues_max: quota.queuesMax ?? null,
      items_max: quota.itemsMax ?? null,
      bytes_max: quota.bytesMax ?? null,
      requests_per_second_max: quota.requestsPerSecondMax ?? null,
    },
  }
}

function viewUsed(namespace: Namespace, usage: Usage): Static<typeof UsedNamespaceView> {
  return { ...viewNamespace(namespace), usage: { ...usage } }
}

function createNotFoundError(name: string): KnownError {
  return new KnownError('NAMESPACE_NOT_FOUND', `namespace does not exist; '${name}' was not found`)
}
