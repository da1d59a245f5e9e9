/** Partial success of calls that name several letters: each letter is changed, or refused with a reason. */
import { type Static, Type } from 'typebox'
import { createSelectionChangedError } from '../../../letters/campaigns/preview.ts'
import type { Letters } from '../../../letters/letters.ts'
import { component } from '../../http/openapi/annotations.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { ExpectedCount, LetterId, nullable } from '../values/schemas.ts'

/** More letters need a campaign, which survives a crash, can be halted and reports each outcome. */
const idsMax = 1_000

export const Ids = Type.Array(LetterId, {
  minItems: 1,
  description: `The letters, at most ${idsMax}. Use a campaign for more.`,
})

export const DoneView = component(
  'LetterResult',
  Type.Object({
    id: Type.String({ description: 'The id from the request.' }),
    is_done: Type.Boolean({ description: 'Whether the letter was changed.' }),
    refusal: nullable(Type.String(), 'Why the letter was not changed, as a code.'),
    message: nullable(Type.String(), 'Why the letter was not changed, for people.'),
  }),
)

/** `letterId` is null for an unknown id. */
export type ResolvedId = Readonly<{ id: string; letterId: string | null }>

/** The fields by which a call names several letters. */
export const namedFields = {
  ids: Ids,
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: idsMax, description: 'Changes only the letters of the first ids.' }),
  ),
  expected_count: ExpectedCount,
}
export type NamedLetters = Readonly<{ ids: readonly string[]; limit?: number; expected_count?: number }>

/**
 * Resolves ids to letters. A letter that is named by several ids appears once, with the first of them.
 * Rejects with SELECTION_CHANGED if not exactly `expected_count` of them exist.
 */
export async function resolveIds(
  { ids, limit = idsMax, expected_count }: NamedLetters,
  letters: Letters,
): Promise<readonly ResolvedId[]> {
  if (ids.length > idsMax) {
    const message = `has ${ids.length} ids; at most ${idsMax} are allowed. Use POST /api/v1/campaigns for more`
    throw new InvalidRequest([{ field: 'body.ids', message }])
  }
  const unique = [...new Set(ids)]
  const found = await letters.resolveIds(unique)
  const seen = new Set<string>()
  const resolved = unique
    .flatMap((id, index) => {
      const letterId = found[index] ?? null
      if (letterId !== null && seen.has(letterId)) return []
      if (letterId !== null) seen.add(letterId)
      return { id, letterId }
    })
    .slice(0, limit)
  const count = resolved.filter(({ letterId }) => letterId !== null).length
  if (expected_count !== undefined && expected_count !== count)
    throw createSelectionChangedError(count, expected_count)
  return resolved
}

/** Calls `change` with all known letters. The result of an unknown id is undefined. */
export async function changeEach<R extends Readonly<{ letterId: string }>>(
  resolved: readonly ResolvedId[],
  change: (letterIds: readonly string[]) => Promise<readonly R[]>,
): Promise<readonly Readonly<{ id: string; result: R | undefined }>[]> {
  const letterIds = resolved.flatMap(({ letterId }) => letterId ?? [])
  const results = letterIds.length === 0 ? [] : await change(letterIds)
  const byLetter = new Map(results.map((result) => [result.letterId, result]))
  return resolved.map(({ id, letterId }) => ({
    id,
    result: letterId === null ? undefined : byLetter.get(letterId),
  }))
}

export function viewDone(id: string, isDone: boolean, refusal: string | null): Static<typeof DoneView> {
  if (isDone) return { id, is_done: true, refusal: null, message: null }
  const code = refusal ?? 'missing'
  return { id, is_done: false, refusal: code, message: describeRefusal(code) }
}

const refusals: Readonly<Record<string, string>> = {
  missing: 'the letter does not exist there',
  archived: 'the letter is archived; restore it first',
  redriving: 'a redrive of the letter is in progress',
  leased: 'a worker has leased the letter from its dead queue',
  resolved: 'the letter is resolved',
  discarded: 'the letter was discarded',
  dead: 'the letter is DEAD; set include_dead to send it',
  exhausted: 'the letter has no redrives left',
  'no-target': 'the queue to send to does not exist',
  'dead-target': 'the queue to send to is a dead queue, which a redrive never goes to',
  'no-edit': 'this edited version does not exist',
  'not-due': 'the letter is not due yet',
  'not-discarded': 'the letter is not discarded, or another change discarded it',
  'not-redriving': 'no redrive of the letter is in progress',
  processing: 'a worker has leased the item of the redrive',
  elsewhere: 'the letter was sent to another system',
  'queue-gone': 'the dead queue of the letter was deleted',
  taken: 'a letter with the same source id is in the dead queue',
}

export function describeRefusal(refusal: string): string {
  return refusals[refusal] ?? refusal
}
