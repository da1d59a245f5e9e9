/** What people do to letters that they name: send back, edit and send back, give up, bring back. Each by itself, each audited. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import type { LetterChanges, Letters } from '../../../letters/letters.ts'
import type { RedriveRefusal, RedriveResult } from '../../../storage/contract/letters.ts'
import type { ApiContext } from '../../context.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { storedAsBytes } from '../../http/validation/unstorable-text.ts'
import { v1 } from '../dialect.ts'
import { createTrace } from '../queues/queue-admin.ts'
import { nullable } from '../values/cursor.ts'
import { bytesGiven, HeaderSpec } from '../values/wire-bytes.ts'
import { LetterId, letterNotFound } from './letters.ts'

/** More than that is a campaign: it survives a crash, can be halted, and tells what became of each. */
export const idsMax = 1_000

const Ids = Type.Array(LetterId, {
  minItems: 1,
  description: `At most ${idsMax}; for more there are campaigns.`,
})
const Reason = Type.String({
  minLength: 1,
  maxLength: 1_000,
  pattern: '\\S',
  description: 'Why; kept in the audit log.',
})
const Target = Type.String({
  minLength: 1,
  maxLength: 512,
  description: 'The queue to send to, instead of where it came from. Never one that takes dead letters.',
})

const sendFields = {
  target: Type.Optional(Target),
  include_dead: Type.Optional(
    Type.Boolean({ description: 'Also what is DEAD, because you looked at it. Default false.' }),
  ),
  reason: Type.Optional(Reason),
}

const EditSpec = Type.Object(
  {
    payload: Type.Optional(Type.String({ ...storedAsBytes, description: 'As text.' })),
    payload_base64: Type.Optional(Type.String({ description: 'As bytes.' })),
    key: Type.Optional(nullable(Type.String({ maxLength: 10_000 }), 'As text; null: no key.')),
    key_base64: Type.Optional(Type.String({ maxLength: 14_000 })),
    headers: Type.Optional(Type.Array(HeaderSpec, { maxItems: 1_000, description: 'All of them.' })),
  },
  { additionalProperties: false, minProperties: 1, description: 'What is left out is as in the letter.' },
)
const EditNumber = Type.Integer({
  minimum: 1,
  maximum: 2 ** 31 - 1,
  description: 'The number of an edited version that was sent before: it is sent again.',
})

const SentFields = {
  id: Type.String({ description: 'As it was asked for.' }),
  is_started: Type.Boolean(),
  why: nullable(
    Type.String(),
    'Why not, as a code: missing, archived, redriving, leased, resolved, discarded, dead, exhausted, no-target, dead-target.',
  ),
  message: nullable(Type.String(), 'The same, for people.'),
  number: nullable(Type.Integer(), 'The how manieth redrive of this letter.'),
  target: nullable(
    Type.Object({ queue: Type.String(), partition: Type.Integer(), id: Type.String() }),
    'Where it went, and what it is there.',
  ),
}
const SentView = Type.Object(SentFields)
const DoneView = Type.Object({
  id: Type.String(),
  is_done: Type.Boolean(),
  why: nullable(Type.String(), 'Why not, as a code.'),
  message: nullable(Type.String()),
})

export const letterActionRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/letters/redrive',
    permission: 'letter.redrive',
    summary:
      'Sends letters back to where they came from, or to a queue. Each by itself: the answer says what became of each.',
    tag: 'letters',
    dialect: v1,
    schema: {
      body: Type.Object({ ids: Ids, ...sendFields }, { additionalProperties: false }),
      response: {
        200: Type.Object({ letters: Type.Array(SentView), started: Type.Integer(), refused: Type.Integer() }),
      },
    },
    handler: async (request, _reply, context) => {
      const { ids, target, include_dead } = request.body
      const known = await resolve(ids, context.letters())
      const how = {
        target: target ?? null,
        edit: null,
        isDeadAllowed: include_dead ?? false,
        isCapped: false,
      }
      const sent = await each(known, (letterIds) =>
        context.letters().redrive(letterIds, how, createTrace(request, request.body.reason)),
      )
      refuseTarget(
        sent.flatMap(({ result }) => result ?? []),
        target,
      )
      const letters = sent.map(({ id, result }) => viewSent(id, result))
      const started = letters.filter(({ is_started }) => is_started).length
      return { letters, started, refused: letters.length - started }
    },
  }),

  route({
    method: 'POST',
    path: '/api/v1/letters/{id}/redrive',
    permission: 'letter.redrive',
    alsoNeeds: (request) =>
      typeof (request.body as { edit?: unknown } | undefined)?.edit === 'object' ? 'letter.edit' : undefined,
    summary:
      'Sends one letter back: as it came, edited, or as edited before. The original and every edited version are kept.',
    tag: 'letters',
    dialect: v1,
    schema: {
      params: Type.Object({ id: LetterId }),
      body: Type.Object(
        { ...sendFields, edit: Type.Optional(Type.Union([EditSpec, EditNumber])) },
        { additionalProperties: false },
      ),
      response: {
        200: Type.Object({
          ...SentFields,
          edit: nullable(Type.Integer(), 'The number of the edited version that was sent.'),
        }),
      },
    },
    handler: (request, _reply, context) => redriveOne(request, request.params.id, request.body, context),
  }),

  route({
    method: 'POST',
    path: '/api/v1/letters/discard',
    permission: 'letter.discard',
    summary:
      'Gives letters up. They stay as tombstones until their retention ends, so that nothing brings them back by mistake.',
    tag: 'letters',
    dialect: v1,
    schema: {
      body: Type.Object({ ids: Ids, reason: Reason }, { additionalProperties: false }),
      response: {
        200: Type.Object({
          letters: Type.Array(DoneView),
          discarded: Type.Integer(),
          refused: Type.Integer(),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { ids, reason } = request.body
      const known = await resolve(ids, context.letters())
      const done = await each(known, (letterIds) =>
        context.letters().discard(letterIds, createTrace(request, reason)),
      )
      const letters = done.map(({ id, result }) =>
        viewDone(id, result?.isDiscarded ?? false, result?.why ?? null),
      )
      const discarded = letters.filter(({ is_done }) => is_done).length
      return { letters, discarded, refused: letters.length - discarded }
    },
  }),

  ...(['/api/v1/letters/restore', '/api/v1/archive/restore'] as const).map((path) =>
    route({
      method: 'POST',
      path,
      permission: 'letter.restore',
      summary:
        'Brings letters back from the archive to their dead queue: as DEAD where their redrives are used up, else as PENDING.',
      tag: path.startsWith('/api/v1/archive') ? 'archive' : 'letters',
      dialect: v1,
      schema: {
        body: Type.Object({ ids: Ids, reason: Type.Optional(Reason) }, { additionalProperties: false }),
        response: {
          200: Type.Object({
            letters: Type.Array(DoneView),
            restored: Type.Integer(),
            refused: Type.Integer(),
          }),
        },
      },
      handler: async (request, _reply, context) => {
        const { ids, reason } = request.body
        const known = await resolve(ids, context.letters())
        const done = await each(known, (letterIds) =>
          context.letters().restore(letterIds, createTrace(request, reason)),
        )
        const letters = done.map(({ id, result }) =>
          viewDone(id, result?.isRestored ?? false, result?.why ?? null),
        )
        const restored = letters.filter(({ is_done }) => is_done).length
        return { letters, restored, refused: letters.length - restored }
      },
    }),
  ),
]

type OneSpec = Readonly<{
  target?: string
  include_dead?: boolean
  reason?: string
  edit?: Static<typeof EditSpec> | number
}>

async function redriveOne(request: FastifyRequest, id: string, spec: OneSpec, context: ApiContext) {
  const { target, include_dead: isDeadAllowed = false, reason } = spec
  const edit = typeof spec.edit === 'object' ? changesOf(spec.edit) : (spec.edit ?? null)
  const letters = context.letters()
  const [letterId] = await letters.resolveIds([id])
  if (letterId === null || letterId === undefined) throw letterNotFound(id)
  const trace = createTrace(request, reason)
  const [sent] = await letters.redrive(
    [letterId],
    { target: target ?? null, edit, isDeadAllowed, isCapped: false },
    trace,
  )
  if (sent?.isStarted !== true) {
    if (sent?.why === 'no-edit') throw editNotFound(id, spec.edit)
    throw notSent(id, sent?.why ?? 'missing', target)
  }
  return { ...viewSent(id, sent), edit: sent.edit ?? null }
}

function changesOf(edit: Static<typeof EditSpec>): LetterChanges {
  const payload = bytesGiven('body.edit.payload', edit.payload, edit.payload_base64)
  const key = bytesGiven('body.edit.key', edit.key, edit.key_base64)
  const headers = edit.headers?.map(
    (header, index) =>
      [
        header.name,
        bytesGiven(`body.edit.headers[${index}].value`, header.value, header.value_base64) ?? null,
      ] as const,
  )
  return {
    ...(payload !== undefined && payload !== null && { payload }),
    ...(key !== undefined && { key }),
    ...(headers !== undefined && { headers }),
  }
}

type Known = Readonly<{ id: string; letterId: string | null }>

/** Each letter once, under the name it was asked for by. Unknown ones are null. */
async function resolve(ids: readonly string[], letters: Letters): Promise<readonly Known[]> {
  if (ids.length > idsMax) {
    const message = `has ${ids.length} ids; ${idsMax} are allowed at once. For more start a campaign: POST /api/v1/campaigns`
    throw new InvalidRequest([{ field: 'body.ids', message }])
  }
  const once = [...new Set(ids)]
  const found = await letters.resolveIds(once)
  const seen = new Set<string>()
  return once.flatMap((id, index) => {
    const letterId = found[index] ?? null
    if (letterId !== null && seen.has(letterId)) return []
    if (letterId !== null) seen.add(letterId)
    return { id, letterId }
  })
}

async function each<R extends Readonly<{ letterId: string }>>(
  known: readonly Known[],
  act: (letterIds: readonly string[]) => Promise<readonly R[]>,
): Promise<readonly Readonly<{ id: string; result: R | undefined }>[]> {
  const letterIds = known.flatMap(({ letterId }) => letterId ?? [])
  const results = letterIds.length === 0 ? [] : await act(letterIds)
  const byLetter = new Map(results.map((result) => [result.letterId, result]))
  return known.map(({ id, letterId }) => ({
    id,
    result: letterId === null ? undefined : byLetter.get(letterId),
  }))
}

/** A target that takes none of them is a mistake in the request, and nothing was changed. */
function refuseTarget(sent: readonly RedriveResult[], target: string | undefined): void {
  if (target === undefined) return
  const why = sent.find((one) => !one.isStarted && (one.why === 'no-target' || one.why === 'dead-target'))
  if (why !== undefined && !why.isStarted && !sent.some((one) => one.isStarted))
    throw targetInvalid(target, why.why)
}

function targetInvalid(target: string | undefined, why: RedriveRefusal): KnownError {
  const named = target === undefined ? 'where it came from' : `queue ${JSON.stringify(target)}`
  return why === 'dead-target'
    ? new KnownError('TARGET_INVALID', `${named} takes dead letters: a redrive never goes there`)
    : new KnownError('TARGET_INVALID', `${named} is not there any more, or was never a queue of this server`)
}

function editNotFound(id: string, edit: OneSpec['edit']): KnownError {
  const message = `letter ${id} has no edited version ${edit}: GET /api/v1/letters/${id} shows them as edits`
  return new KnownError('LETTER_NOT_RETRYABLE', message)
}

function notSent(id: string, why: RedriveRefusal, target: string | undefined): KnownError {
  if (why === 'missing') return letterNotFound(id)
  if (why === 'no-target' || why === 'dead-target') return targetInvalid(target, why)
  return new KnownError('LETTER_NOT_RETRYABLE', `letter ${id} cannot be sent now: ${sayWhy(why)}`)
}

function viewSent(id: string, sent: RedriveResult | undefined): Static<typeof SentView> {
  if (sent?.isStarted === true) {
    const { queue, partition, id: itemId, number } = sent
    return {
      id,
      is_started: true,
      why: null,
      message: null,
      number,
      target: { queue, partition, id: itemId },
    }
  }
  const why = sent?.why ?? 'missing'
  return { id, is_started: false, why, message: sayWhy(why), number: null, target: null }
}

function viewDone(id: string, isDone: boolean, why: string | null): Static<typeof DoneView> {
  if (isDone) return { id, is_done: true, why: null, message: null }
  return { id, is_done: false, why: why ?? 'missing', message: sayWhy(why ?? 'missing') }
}

const words: Readonly<Record<string, string>> = {
  missing: 'there is no such letter there',
  archived: 'it is in the archive: restore it first',
  redriving: 'a redrive of it is under way',
  leased: 'a consumer of its dead queue holds it',
  resolved: 'it is resolved',
  discarded: 'it was discarded',
  dead: 'it is DEAD: include_dead sends it all the same',
  exhausted: 'the redrives of its policy are used up',
  'no-target': 'the queue to send it to is not there',
  'dead-target': 'the queue to send it to takes dead letters: a redrive never goes there',
  'no-edit': 'there is no such edited version of it',
  'not-due': 'it is not its time yet',
  'queue-gone': 'the dead queue it was in was deleted',
  taken: 'its source id is in the dead queue again',
}

function sayWhy(why: string): string {
  return words[why] ?? why
}
