import { Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { RedriveRefusal } from '../../../storage/contract/letters.ts'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { checkCount, parseLetterIds } from '../letter-ids.ts'
import { createSuccess, logEvent, Success } from './answer.ts'

const skipReasons = ['already_queued', 'not_dead_letter', 'enqueue_failed'] as const
type SkipReason = (typeof skipReasons)[number]

export const requeueRoute = route({
  method: 'POST',
  path: `${prefix}/requeue`,
  operationId: 'dlqRequeue',
  errors: ['LETTER_NOT_FOUND'],
  permission: 'letter.redrive',
  summary: 'Redrives dead letters to their origin. A letter that cannot be sent is skipped, with the reason.',
  tag: 'dlq',
  dialect: dlqManagement,
  slowMs: 5_000,
  schema: {
    body: Type.Object(
      {
        ids: Type.Array(Type.String(), {
          minItems: 1,
          description: 'Ids of letters, at most `dlq.requeue_limit`.',
        }),
      },
      { additionalProperties: false },
    ),
    response: {
      200: Success(
        Type.Object({
          requeued: Type.Array(Type.String(), { description: 'Ids of the letters that were sent.' }),
          skipped: Type.Array(Type.Object({ id: Type.String(), reason: Type.Enum([...skipReasons]) }), {
            description:
              'Letters that were not sent. already_queued: a redrive or lease is in progress; not_dead_letter: ' +
              'the letter is resolved or discarded; enqueue_failed: its target is missing or a dead queue.',
          }),
        }),
      ),
    },
  },
  handler: async (request, _reply, context) => {
    const startedMs = performance.now()
    // The contract reports an unavailable store before errors in the list.
    const letters = context.letters()
    checkCount(request.body.ids, context.dlqLimits.requeueMax)
    const ids = await resolveKnownIds(letters, parseLetterIds(request.body.ids))

    const attribution = createAttribution(request, 'requeue')
    const how = { target: null, edit: null, isDeadAllowed: true, isCapped: false }
    const results = await letters.redrive(ids, how, attribution)
    const requeued = results.filter((result) => result.isStarted).map((result) => result.letterId)
    const skipped = results.flatMap((result) =>
      result.isStarted ? [] : [{ id: result.letterId, reason: toSkipReason(result.refusal) }],
    )
    const counts = { requeued: requeued.length, skipped: skipped.length }
    logEvent('dlq.requeue', startedMs, counts, request, context)
    return createSuccess({ requeued, skipped })
  },
})

/** Returns each letter's own id once. A single unknown id refuses the whole call. */
async function resolveKnownIds(letters: Letters, given: readonly string[]): Promise<readonly string[]> {
  const ids = await letters.resolveIds(given)
  const unknown = given.filter((_, index) => (ids[index] ?? null) === null)
  if (unknown.length > 0) {
    const more = unknown.length > 5 ? ` and ${unknown.length - 5} more` : ''
    throw new KnownError(
      'LETTER_NOT_FOUND',
      `dead letter ${unknown.slice(0, 5).join(', ')}${more} does not exist`,
    )
  }
  return [...new Set(ids.filter((id) => id !== null))]
}

function toSkipReason(refusal: RedriveRefusal): SkipReason {
  switch (refusal) {
    case 'redriving':
    case 'leased':
      return 'already_queued'
    case 'no-target':
    case 'dead-target':
    case 'no-edit':
      return 'enqueue_failed'
    default:
      return 'not_dead_letter'
  }
}
