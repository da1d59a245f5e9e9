/**
 * The operations of workers on Kafka: list and get messages of a dead-letter topic, replay one or all of
 * them, and discard one. They use the same letters, campaigns and audit log as every other API.
 */
import { Type } from 'typebox'
import { nameReplayQueue, type ReplayMode, replayModes } from '../../core/kafka/replay-queues.ts'
import { KnownError } from '../../errors.ts'
import type { LetterSearch, Letters } from '../../letters/letters.ts'
import type { ApiContext } from '../context.ts'
import { createAttribution } from '../http/attribution.ts'
import { exactlyOneOf } from '../http/openapi/annotations.ts'
import { route } from '../http/route.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'
import { sendParts, writeJsonParts, writeListParts } from '../http/wire/json-parts.ts'
import { describeSharedTopic, findSharedTopics, refuseSharedTopics } from '../v1/kafka/shared-topics.ts'
import { describeRefusal } from '../v1/letters/letter-results.ts'
import { pageQuery, readCursor, writeCursor } from '../v1/values/cursor.ts'
import { LetterId, nullable } from '../v1/values/schemas.ts'
import { internal, internalPrefix } from './dialect.ts'
import { findRecord } from './find-record.ts'
import { InternalMessage, viewInternalMessage } from './message-view.ts'

const Topic = Type.String({ minLength: 1, maxLength: 249, description: 'A dead-letter topic.' })
const Offset = Type.Integer({ minimum: 0, description: 'The offset in the dead-letter topic.' })
const Partition = Type.Optional(
  Type.Integer({ minimum: 0, description: 'The partition. Needed if several have a letter of this offset.' }),
)
const ClusterName = Type.Optional(
  Type.String({ minLength: 1, maxLength: 64, description: 'The Kafka cluster. Needed if several match.' }),
)
const Reason = Type.Optional(Type.String({ maxLength: 1_000, description: 'The reason for the audit log.' }))
const Mode = Type.Optional(
  Type.Enum([...replayModes], {
    description:
      'topic: the original topic, refused if other groups read it; side-topic: the topic of the group that failed; ' +
      'header: the original topic, and other groups skip the record by its header; forced: the original topic.',
  }),
)
const Force = Type.Optional(
  Type.Boolean({
    description: 'Sends to the original topic although other groups read it. Same as mode forced.',
  }),
)

const tag = 'internal'
const jsonType = 'application/json; charset=utf-8'
const inPath = Type.Object({ topic: Topic, offset: Offset })
const place = { partition: Partition, cluster: ClusterName }

export const internalDlqRoutes = [
  route({
    method: 'GET',
    path: internalPrefix,
    operationId: 'listInternalMessages',
    permission: 'letter.read',
    summary: 'Lists the letters of a dead-letter topic, newest first.',
    tag,
    dialect: internal,
    slowMs: 5_000,
    answerKind: 'large',
    schema: {
      querystring: pageQuery({ topic: Topic, cluster: ClusterName }, { default: 50, max: 200 }),
      response: {
        200: Type.Object({
          messages: Type.Array(InternalMessage, { description: 'The letters of this page.' }),
          nextCursor: nullable(Type.String(), 'The `cursor` of the next page; null on the last page.'),
          hasNext: Type.Boolean({ description: 'Whether another page follows.' }),
        }),
      },
    },
    handler: async ({ query: { topic, cluster, cursor, limit } }, reply, context) => {
      const list = 'internal-messages'
      const [value, id] = cursor === undefined ? [] : readCursor(cursor, list, ['number', 'string'])
      const page = await context.letters().list({
        filter: { queues: listQueues(topic, cluster, context) },
        order: 'deadLetteredAt',
        isDescending: true,
        countMax: limit,
        bytes: 'all',
        ...(value !== undefined && id !== undefined && { after: { value, id } }),
      })
      const { next } = page
      const nextCursor = next === null ? null : writeCursor(list, [next.value, next.id])
      const messages = []
      for (const letter of page.letters) messages.push(await viewInternalMessage(letter, context))
      const parts = writeListParts('messages', messages, { nextCursor, hasNext: next !== null })
      return sendParts(reply, jsonType, parts)
    },
  }),

  route({
    method: 'GET',
    path: `${internalPrefix}/{topic}/{offset}`,
    operationId: 'getInternalMessage',
    errors: ['LETTER_NOT_FOUND'],
    permission: 'payload.read',
    summary: 'Returns the letter of a record of a dead-letter topic.',
    tag,
    dialect: internal,
    answerKind: 'large',
    schema: {
      params: inPath,
      querystring: Type.Object(place, { additionalProperties: false }),
      response: { 200: InternalMessage },
    },
    handler: async ({ params, query }, reply, context) => {
      const found = await context.letters().find(await findRecord({ ...params, ...query }, context))
      if (found === null) throw new KnownError('LETTER_NOT_FOUND', 'the letter was removed just now')
      return sendParts(reply, jsonType, writeJsonParts(await viewInternalMessage(found.item, context)))
    },
  }),

  route({
    method: 'POST',
    path: `${internalPrefix}/replay`,
    operationId: 'replayMessage',
    errors: [
      'LETTER_NOT_FOUND',
      'LETTER_NOT_RETRYABLE',
      'KAFKA_TOPIC_SHARED',
      'KAFKA_UNAVAILABLE',
      'TARGET_INVALID',
    ],
    permission: 'letter.redrive',
    summary:
      'Sends a dead letter back to its topic. It is RESOLVED when its consumer group has processed it.',
    tag,
    dialect: internal,
    schema: {
      body: exactlyOneOf(
        ['id', 'topic'],
        Type.Object(
          {
            id: Type.Optional(LetterId),
            topic: Type.Optional(Topic),
            offset: Type.Optional(Offset),
            ...place,
            mode: Mode,
            force: Force,
            reason: Reason,
          },
          { additionalProperties: false },
        ),
      ),
      response: {
        200: Type.Object({
          id: Type.String({ description: 'Id of the letter.' }),
          status: Type.Literal('RETRYING', { description: 'The redrive has started.' }),
          attempt: Type.Integer({ description: 'Ordinal of this redrive of the letter, starting at 1.' }),
          queue: Type.String({ description: 'The queue in which the redrive waits until it is sent.' }),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { id, topic, offset, partition, cluster, mode, force, reason } = request.body
      const letters = context.letters()
      if ((id === undefined) === (topic === undefined))
        throw new InvalidRequest([{ field: 'body', message: 'needs either id, or topic and offset' }])
      const letterId =
        id !== undefined || topic === undefined
          ? await resolveId(id ?? '', letters)
          : await findRecord({ topic, offset: requireOffset(offset), partition, cluster }, context)
      const target = await chooseTarget(letterId, readMode(mode, force), context)
      await refuseSharedTopics([letterId], target, context)
      const how = { target, edit: null, isDeadAllowed: true, isCapped: false }
      const [result] = await letters.redrive([letterId], how, createAttribution(request, reason ?? 'replay'))
      if (result?.isStarted !== true) throw createRefusal(letterId, result?.refusal ?? 'missing')
      return { id: letterId, status: 'RETRYING' as const, attempt: result.number, queue: result.queue }
    },
  }),

  route({
    method: 'POST',
    path: `${internalPrefix}/replay-all`,
    operationId: 'replayAllMessages',
    errors: ['KAFKA_TOPIC_SHARED', 'KAFKA_UNAVAILABLE', 'TARGET_INVALID'],
    permission: 'campaign.write',
    alsoNeeds: () => 'letter.redrive',
    summary: 'Sends all open letters of a dead-letter topic back with a campaign.',
    tag,
    dialect: internal,
    slowMs: 5_000,
    isBodyOptional: true,
    schema: {
      querystring: Type.Object(
        { topic: Topic, cluster: ClusterName, mode: Mode, force: Force, reason: Reason },
        { additionalProperties: false },
      ),
      body: Type.Object({}, { additionalProperties: false }),
      response: {
        200: Type.Object({
          campaign_id: Type.String({
            description: 'The campaign. Its progress is at /api/v1/campaigns/{id}.',
          }),
          count: Type.Integer({ description: 'Number of letters that are open now and will be sent.' }),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { topic, cluster, mode, force, reason = 'replay-all' } = request.query
      const letters = context.letters()
      const queues = listQueues(topic, cluster, context)
      const selected = readMode(mode, force)
      const target = selected === undefined ? null : nameTarget(topic, cluster, selected, context)
      const filter = { queues, states: ['waiting', 'dead'] as const }
      await refuseSharedOrigins(filter, target, context)
      const counts = await letters.count({ filter, by: ['queue'] })
      const campaign = await letters.campaigns.create(
        {
          name: `replay-all ${topic}`.slice(0, 200),
          action: 'redrive',
          selection: { filter },
          target,
          isDeadAllowed: true,
          canaryCount: 0,
          ratePerSecond: 0,
          rampUs: 0,
          haltRatio: 1,
          haltMin: 10,
          limit: null,
          expectedCount: null,
        },
        createAttribution(request, reason),
      )
      return { campaign_id: campaign.id, count: counts.reduce((sum, { count }) => sum + count, 0) }
    },
  }),

  route({
    method: 'DELETE',
    path: `${internalPrefix}/{topic}/{offset}`,
    operationId: 'discardInternalMessage',
    errors: ['LETTER_NOT_FOUND', 'LETTER_NOT_DISCARDABLE'],
    permission: 'letter.discard',
    summary: 'Discards the letter of a record of a dead-letter topic. The record stays in Kafka.',
    tag,
    dialect: internal,
    schema: {
      params: inPath,
      querystring: Type.Object({ ...place, reason: Reason }, { additionalProperties: false }),
      response: {
        200: Type.Object({
          id: Type.String({ description: 'Id of the letter.' }),
          status: Type.Literal('DISCARDED', { description: 'The letter is discarded.' }),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { reason = 'discarded by offset', ...query } = request.query
      const id = await findRecord({ ...request.params, ...query }, context)
      const [result] = await context.letters().discard([id], createAttribution(request, reason))
      if (result?.isDiscarded === true) return { id, status: 'DISCARDED' as const }
      const refusal = result?.refusal ?? 'missing'
      throw new KnownError(
        'LETTER_NOT_DISCARDABLE',
        `letter ${id} cannot be discarded: ${describeRefusal(refusal)}`,
      )
    },
  }),
]

async function resolveId(id: string, letters: Letters): Promise<string> {
  const [letterId] = await letters.resolveIds([id])
  if (letterId === null || letterId === undefined)
    throw new KnownError('LETTER_NOT_FOUND', `letter ${id} does not exist`)
  return letterId
}

function requireOffset(offset: number | undefined): number {
  if (offset !== undefined) return offset
  throw new InvalidRequest([{ field: 'body.offset', message: 'is required with topic' }])
}

function readMode(mode: ReplayMode | undefined, isForced: boolean | undefined): ReplayMode | undefined {
  if (isForced !== true) return mode
  if (mode === undefined || mode === 'topic' || mode === 'forced') return 'forced'
  throw new InvalidRequest([{ field: 'force', message: `cannot be combined with mode ${mode}` }])
}

/** Null: the queue or the cluster that the letter came from. */
async function chooseTarget(
  letterId: string,
  mode: ReplayMode | undefined,
  { storage }: ApiContext,
): Promise<string | null> {
  if (mode === undefined) return null
  const [letter] = await storage().getLetters([letterId], 'head')
  const cluster = letter?.origin?.kind === 'kafka' ? letter.origin.cluster : null
  return cluster === null ? null : nameReplayQueue(cluster, mode)
}

function findClusters(cluster: string | undefined, { kafka }: ApiContext) {
  const clusters = kafka.clusters.filter(({ name }) => cluster === undefined || name === cluster)
  if (clusters.length > 0 || cluster === undefined) return clusters
  throw new KnownError('KAFKA_CLUSTER_NOT_FOUND', `there is no Kafka cluster named ${cluster}`)
}

function nameTarget(
  topic: string,
  cluster: string | undefined,
  mode: ReplayMode,
  context: ApiContext,
): string {
  const [only, other] = findClusters(cluster, context)
  if (only !== undefined && other === undefined) return nameReplayQueue(only.name, mode)
  const message = `is needed: ${topic} may be a topic of several clusters, or of none`
  throw new InvalidRequest([{ field: 'query.cluster', message }])
}

/** The dead queues of a topic. A dead queue that was filled over HTTP can have the name of a topic, too. */
function listQueues(topic: string, cluster: string | undefined, context: ApiContext): readonly string[] {
  const queues = findClusters(cluster, context).map(({ nameDeadQueue }) => nameDeadQueue(topic))
  return queues.length === 0 ? [topic] : [...new Set(queues)]
}

type OpenFilter = Extract<LetterSearch['filter'], object>

/** Letters of one dead-letter topic came from few topics, which their counts name. */
async function refuseSharedOrigins(
  filter: OpenFilter,
  target: string | null,
  context: ApiContext,
): Promise<void> {
  const { kafka } = context
  if (kafka.clusters.length === 0) return
  const counts = await context.letters().count({ filter, by: ['origin'] })
  const origins = counts.flatMap(({ origin: name = '' }) =>
    kafka.clusters.map((cluster) => ({
      kind: 'kafka' as const,
      name,
      partition: null,
      id: '',
      group: null,
      cluster: cluster.name,
      createdAt: 0,
    })),
  )
  const [shared] = await findSharedTopics(origins, target, context)
  if (shared !== undefined) throw new KnownError('KAFKA_TOPIC_SHARED', describeSharedTopic(shared))
}

function createRefusal(letterId: string, refusal: string): KnownError {
  if (refusal === 'missing') return new KnownError('LETTER_NOT_FOUND', `letter ${letterId} does not exist`)
  if (refusal === 'no-target' || refusal === 'dead-target')
    return new KnownError(
      'TARGET_INVALID',
      `the origin of letter ${letterId} is neither a queue of this server nor a topic of a known cluster`,
    )
  return new KnownError(
    'LETTER_NOT_RETRYABLE',
    `letter ${letterId} cannot be replayed: ${describeRefusal(refusal)}`,
  )
}
