/** Routes that redrive named letters: as they are, edited, or in an earlier edited version. */

import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import type { RedriveRefusal, RedriveResult } from '../../../storage/contract/letters.ts'
import type { ApiContext } from '../../context.ts'
import { createAttribution } from '../../http/attribution.ts'
import { takeBody } from '../../http/bodies/body-reader.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { refuseSharedTopics } from '../kafka/shared-topics.ts'
import { LetterId, nullable } from '../values/schemas.ts'
import { createLetterNotFoundError } from './letter-detail.ts'
import { changeEach, describeRefusal, namedFields, resolveIds } from './letter-results.ts'
import { RedriveBody, type RedriveRequest, redriveBodyReader, redriveFields } from './redrive-body.ts'

const resultFields = {
  id: Type.String({ description: 'The id from the request.' }),
  is_started: Type.Boolean({ description: 'Whether the letter was sent.' }),
  refusal: nullable(
    Type.String(),
    'Why the letter was not sent, as a code: missing, archived, redriving, leased, resolved, discarded, dead, ' +
      'exhausted, no-target or dead-target.',
  ),
  message: nullable(Type.String(), 'Why the letter was not sent, for people.'),
  number: nullable(Type.Integer(), 'Ordinal of this redrive of the letter, starting at 1.'),
  target: nullable(
    Type.Object({
      queue: Type.String({ description: 'The target queue.' }),
      partition: Type.Integer({ description: 'The partition in the target queue.' }),
      id: Type.String({ description: 'The id of the item in the target queue.' }),
    }),
    'Where the letter was sent.',
  ),
}
const ResultView = component('RedriveResult', Type.Object(resultFields))

export const redriveRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/letters/redrive',
    operationId: 'redriveLetters',
    errors: ['TARGET_INVALID', 'SELECTION_CHANGED', 'KAFKA_TOPIC_SHARED', 'KAFKA_UNAVAILABLE'],
    permission: 'letter.redrive',
    summary:
      'Redrives letters to their origins, or to a target queue. Partial success: the answer has a result for each ' +
      'letter.',
    tag: 'letters',
    dialect: v1,
    schema: {
      body: Type.Object({ ...namedFields, ...redriveFields }, { additionalProperties: false }),
      response: {
        200: Type.Object({
          letters: Type.Array(ResultView, { description: 'The result of each letter.' }),
          started: Type.Integer({ description: 'Number of letters that were sent.' }),
          refused: Type.Integer({ description: 'Number of letters that were not sent.' }),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { target, include_dead: isDeadAllowed = false, reason, ...named } = request.body
      const letters = context.letters()
      const options = { target: target ?? null, edit: null, isDeadAllowed, isCapped: false }
      const resolved = await resolveIds(named, letters)
      await refuseSharedTopics(
        resolved.map(({ letterId }) => letterId),
        target ?? null,
        context,
      )
      const redriven = await changeEach(resolved, (letterIds) =>
        letters.redrive(letterIds, options, createAttribution(request, reason)),
      )
      refuseTarget(
        redriven.flatMap(({ result }) => result ?? []),
        target,
      )
      const results = redriven.map(({ id, result }) => viewResult(id, result))
      const started = results.filter(({ is_started }) => is_started).length
      return { letters: results, started, refused: results.length - started }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/letters/{id}/redrive',
    operationId: 'redriveLetter',
    errors: [
      'LETTER_NOT_FOUND',
      'LETTER_NOT_RETRYABLE',
      'TARGET_INVALID',
      'KAFKA_TOPIC_SHARED',
      'KAFKA_UNAVAILABLE',
    ],
    permission: 'letter.redrive',
    alsoNeeds: (request) => {
      const { edit } = takeBody(request, redriveBodyReader)
      return typeof edit === 'object' && edit !== null ? 'letter.edit' : undefined
    },
    bodyReader: redriveBodyReader,
    summary:
      'Redrives one letter: as it is, edited, or in an earlier edited version. The original and all versions are ' +
      'kept.',
    tag: 'letters',
    dialect: v1,
    isBodyOptional: true,
    schema: {
      params: Type.Object({ id: LetterId }),
      body: RedriveBody,
      response: {
        200: Type.Object({
          ...resultFields,
          edit: nullable(Type.Integer(), 'Number of the edited version that was sent.'),
        }),
      },
    },
    handler: (request, _reply, context) => redriveOne(request, request.params.id, context),
  }),
]

async function redriveOne(request: FastifyRequest, id: string, context: ApiContext) {
  const spec = takeBody(request, redriveBodyReader)
  const { target, include_dead: isDeadAllowed = false, reason, edit } = spec
  const letters = context.letters()
  const [letterId] = await letters.resolveIds([id])
  if (letterId === null || letterId === undefined) throw createLetterNotFoundError(id)
  await refuseSharedTopics([letterId], target ?? null, context)
  const options = { target: target ?? null, edit, isDeadAllowed, isCapped: false }
  const [result] = await letters.redrive([letterId], options, createAttribution(request, reason))
  if (result?.isStarted !== true) throw createRefusal(id, result?.refusal ?? 'missing', spec)
  return { ...viewResult(id, result), edit: result.edit ?? null }
}

/**
 * If the target refuses all letters, the request is wrong and nothing was changed: an error instead of
 * results.
 */
function refuseTarget(results: readonly RedriveResult[], target: string | undefined): void {
  if (target === undefined || results.some(({ isStarted }) => isStarted)) return
  for (const result of results) {
    if (result.isStarted) continue
    if (result.refusal === 'no-target' || result.refusal === 'dead-target')
      throw createTargetError(target, result.refusal)
  }
}

function createRefusal(id: string, refusal: RedriveRefusal, { target, edit }: RedriveRequest): KnownError {
  switch (refusal) {
    case 'missing':
      return createLetterNotFoundError(id)
    case 'no-target':
    case 'dead-target':
      return createTargetError(target, refusal)
    case 'no-edit': {
      const message = `letter ${id} has no edited version ${edit}; GET /api/v1/letters/${id} lists its edits`
      return new KnownError('LETTER_NOT_RETRYABLE', message)
    }
    default:
      return new KnownError(
        'LETTER_NOT_RETRYABLE',
        `letter ${id} cannot be redriven: ${describeRefusal(refusal)}`,
      )
  }
}

function createTargetError(target: string | undefined, refusal: 'no-target' | 'dead-target'): KnownError {
  const queue = target === undefined ? 'the origin of the letter' : `queue ${JSON.stringify(target)}`
  return refusal === 'dead-target'
    ? new KnownError('TARGET_INVALID', `${queue} is a dead queue, which a redrive never goes to`)
    : new KnownError('TARGET_INVALID', `${queue} does not exist as a queue of this server`)
}

function viewResult(id: string, result: RedriveResult | undefined): Static<typeof ResultView> {
  if (result?.isStarted === true) {
    const { queue, partition, id: itemId, number } = result
    const target = { queue, partition, id: itemId }
    return { id, is_started: true, refusal: null, message: null, number, target }
  }
  const refusal = result?.refusal ?? 'missing'
  const message = describeRefusal(refusal)
  return { id, is_started: false, refusal, message, number: null, target: null }
}
