/** Answers with one group or cause and its newest letter. */
import { type Static, Type } from 'typebox'
import { KnownError } from '../../../errors.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { ApiContext } from '../../context.ts'
import { LetterSummary, viewSummary } from '../letters/letter-view.ts'
import { nullable } from '../values/schemas.ts'
import { type CauseView, causeFields, viewCauses } from './cause-view.ts'
import { type GroupView, groupFields, viewGroups } from './group-view.ts'

export const GroupParams = Type.Object({
  id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Id of the group.' }),
})
export const CauseParams = Type.Object({
  id: Type.String({ maxLength: 64, description: 'Id of the cause.' }),
})

const sample = nullable(LetterSummary, 'The letter sample_id.')
export const GroupReport = Type.Object({ ...groupFields, sample })
export const CauseReport = Type.Object({ ...causeFields, sample })

export async function showGroup(id: number, context: ApiContext): Promise<Static<typeof GroupReport>> {
  const letters = context.letters()
  const found = await letters.listGroups({ filter: { groupIds: [id] }, countMax: 1, isEmptyToo: true })
  const [group] = await viewGroups(found, letters, context.clock.now())
  if (group === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${id} does not exist`)
  return addSample<GroupView>(group, letters)
}

export async function showCause(id: string, context: ApiContext): Promise<Static<typeof CauseReport>> {
  const letters = context.letters()
  const found = await letters.findCause(id, {})
  if (found === null) throw new KnownError('CAUSE_NOT_FOUND', `cause ${JSON.stringify(id)} does not exist`)
  const [cause] = await viewCauses([found], letters, context.clock.now())
  return addSample(cause as CauseView, letters)
}

async function addSample<V extends Readonly<{ sample_id: string | null }>>(
  view: V,
  letters: Letters,
): Promise<V & { sample: LetterSummary | null }> {
  const found = view.sample_id === null ? null : await letters.find(view.sample_id)
  if (found === null) return { ...view, sample: null }
  const labelOf = await letters.labels([found.item])
  return { ...view, sample: viewSummary(found.item, labelOf(found.item)) }
}
