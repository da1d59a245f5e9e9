/** The lifecycle of a group in answers. */
import { type Static, Type } from 'typebox'
import {
  type GroupLifecycle,
  groupLifecycleStates,
  readLifecycleAt,
} from '../../../core/dead-letters/group-lifecycle.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { component } from '../../http/openapi/annotations.ts'
import { formatTimeOrNull, nullable, nullableTime } from '../values/schemas.ts'

export const LifecycleView = component(
  'GroupLifecycle',
  Type.Object({
    state: Type.String({
      enum: [...groupLifecycleStates],
      description:
        'open, acknowledged, muted, resolved or regressed. A resolved group that gets a letter is regressed.',
    }),
    changed_at: nullableTime('When the state changed; null: nobody decided about the group.'),
    muted_until: nullableTime('When the mute ends; null: the group is not muted.'),
    actor: nullable(Type.String(), 'The person who decided last.'),
    note: Type.String({ description: 'The note of that person.' }),
  }),
)

export function viewLifecycle(stored: GroupLifecycle, now: Instant): Static<typeof LifecycleView> {
  const { state, changedAt, mutedUntil, actor, note } = readLifecycleAt(stored, now)
  return {
    state,
    changed_at: formatTimeOrNull(changedAt),
    muted_until: formatTimeOrNull(mutedUntil),
    actor: actor === '' ? null : actor,
    note,
  }
}
