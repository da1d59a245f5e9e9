import { Type } from 'typebox'
import { convertToUuid } from '../../../core/ids/ksuid.ts'
import type { Item } from '../../../core/items/item.ts'
import { KnownError } from '../../../errors.ts'
import type { Letters } from '../../../letters/letters.ts'
import { toLetterStatus } from '../../../ops/metrics/letter-status.ts'
import type { RedriveRefusal } from '../../../storage/contract/letters.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { type Part, sendParts } from '../../http/wire/json-parts.ts'
import { dlqMessages, prefix } from '../dialects.ts'
import { parseLetterId } from '../letter-ids.ts'
import { Message, writeMessage } from './message-text.ts'
import { readRetriesMax } from './retries-max.ts'

const path = `${prefix}/messages/{id}`
const params = Type.Object({
  id: Type.String({ description: 'Id of the message: its UUID, or the letter id of 27 characters.' }),
})
/** Accepted in the query or in the body. */
const Reason = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 1_000, description: 'The reason for the audit log.' })) },
  { additionalProperties: false },
)
const jsonType = 'application/json; charset=utf-8'

export const messageRoutes = [
  route({
    method: 'GET',
    path,
    operationId: 'getMessage',
    errors: ['LETTER_NOT_FOUND'],
    permission: 'letter.read',
    summary: 'Returns one dead letter as a message.',
    tag: 'dlq',
    dialect: dlqMessages,
    answerKind: 'large',
    schema: { params, response: { 200: Message } },
    handler: async ({ params: { id } }, reply, context) => {
      const item = await findMessage(context.letters(), parseId(id))
      return sendParts(reply, jsonType, await readMessage(context, item))
    },
  }),

  route({
    method: 'POST',
    path: `${path}/retry`,
    operationId: 'retryMessage',
    errors: ['LETTER_NOT_FOUND', 'LETTER_NOT_RETRYABLE', 'TARGET_UNAVAILABLE'],
    permission: 'letter.redrive',
    summary: 'Redrives a PENDING message to its topic, unless its retries are exhausted.',
    tag: 'dlq',
    dialect: dlqMessages,
    isBodyOptional: true,
    schema: {
      params,
      querystring: Reason,
      body: Reason,
      response: { 200: Type.Object({ message: Message }) },
    },
    handler: async (request, reply, context) => {
      const letters = context.letters()
      const { rootId } = await findMessage(letters, parseId(request.params.id))
      const attribution = createAttribution(request, request.query.reason ?? request.body.reason ?? 'retry')
      const how = { target: null, edit: null, isDeadAllowed: false, isCapped: true }
      const [result] = await letters.redrive([rootId], how, attribution)
      const item = await findMessage(letters, rootId)
      if (result?.isStarted !== true)
        throw await createRetryError(context, item, result?.refusal ?? 'missing')
      return sendParts(reply, jsonType, wrapParts(await readMessage(context, item)))
    },
  }),

  route({
    method: 'DELETE',
    path,
    operationId: 'deleteMessage',
    errors: ['LETTER_NOT_FOUND', 'LETTER_NOT_DISCARDABLE'],
    permission: 'letter.discard',
    summary: 'Discards a message. A message that does not exist counts as deleted.',
    tag: 'dlq',
    dialect: dlqMessages,
    schema: { params, querystring: Reason, response: { 200: Type.Object({ id: Type.String() }) } },
    handler: async (request, _reply, context) => {
      const letters = context.letters()
      const given = parseId(request.params.id)
      const [letterId = null] = await letters.resolveIds([given])
      if (letterId === null) return { id: given }
      const attribution = createAttribution(request, request.query.reason ?? 'delete')
      const [result] = await letters.discard([letterId], attribution)
      switch (result?.refusal ?? null) {
        case 'redriving':
        case 'leased':
        case 'resolved':
          throw new KnownError(
            'LETTER_NOT_DISCARDABLE',
            await describeMessage(context, await findMessage(letters, letterId), 'cannot be deleted'),
          )
        default:
          return { id: convertToUuid(letterId) }
      }
    },
  }),
]

function parseId(text: string): string {
  const id = parseLetterId(text)
  if (id !== undefined) return id
  throw new InvalidRequest([{ field: 'path.id', message: 'is neither a UUID nor an id of 27 characters' }])
}

/** Finds a message. Discarded and archived letters are not messages. */
async function findMessage(letters: Letters, id: string): Promise<Item> {
  const found = await letters.find(id)
  if (found === null) throw new KnownError('LETTER_NOT_FOUND', `message ${id} does not exist`)
  const { item, archivedAt } = found
  if (archivedAt === null && item.state !== 'discarded') return item
  const state =
    archivedAt === null ? 'was discarded' : 'is archived: restore it with POST /api/v1/archive/restore'
  throw new KnownError('LETTER_NOT_FOUND', `message ${id} ${state}`)
}

async function readMessage(context: ApiContext, item: Item): Promise<Iterable<Part>> {
  const retriesMax = await readRetriesMax(context, [item.queue])
  return writeMessage(item, { retriesMax: retriesMax(item.queue), isJson: context.bodyThread.isJson })
}

function* wrapParts(message: Iterable<Part>): Generator<Part> {
  yield '{"message":'
  yield* message
  yield '}'
}

async function createRetryError(
  context: ApiContext,
  item: Item,
  refusal: RedriveRefusal,
): Promise<KnownError> {
  switch (refusal) {
    case 'no-target':
    case 'no-edit':
      return new KnownError('TARGET_UNAVAILABLE', describeMissingTarget(item))
    case 'dead-target':
      return new KnownError(
        'LETTER_NOT_RETRYABLE',
        await describeMessage(context, item, describeDeadTarget(item)),
      )
    default:
      return new KnownError('LETTER_NOT_RETRYABLE', await describeMessage(context, item, 'is not retryable'))
  }
}

/** A topic of a cluster is never a queue with the same name. */
function describeMissingTarget({ rootId, origin }: Item): string {
  const [name, id] = [JSON.stringify(origin?.name ?? ''), convertToUuid(rootId)]
  return origin?.cluster == null
    ? `queue ${name} does not exist, so message ${id} cannot be sent to it`
    : `message ${id} came from topic ${name} of cluster ${JSON.stringify(origin.cluster)}, which this server cannot send to`
}

/** A letter that was captured without an origin has its dead queue as its origin. */
function describeDeadTarget({ queue, origin }: Item): string {
  return origin === null || origin.name === queue
    ? 'has no origin other than its dead queue; redrive it with POST /api/v1/letters/{id}/redrive and a target'
    : 'came from a dead queue, and a redrive never goes to a dead queue'
}

async function describeMessage(context: ApiContext, item: Item, what: string): Promise<string> {
  const retriesMax = (await readRetriesMax(context, [item.queue]))(item.queue)
  const id = convertToUuid(item.rootId)
  return `message ${id} ${what}: status ${toLetterStatus(item.state)}, retries ${item.retryCount}/${retriesMax}`
}
