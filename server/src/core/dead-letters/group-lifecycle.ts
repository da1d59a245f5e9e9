/**
 * The lifecycle of a group of dead letters. A person acknowledges, mutes or resolves a group. A resolved
 * group that gets a letter is **regressed**, in the transaction of the letter. A mute ends by time alone.
 */
import type { Instant } from '../time/instant.ts'

export const groupLifecycleStates = ['open', 'acknowledged', 'muted', 'resolved', 'regressed'] as const
export type GroupLifecycleState = (typeof groupLifecycleStates)[number]

export type GroupLifecycle = Readonly<{
  state: GroupLifecycleState
  /** When the state last changed; null: nobody decided about the group yet. */
  changedAt: Instant | null
  /** Only of a muted group. */
  mutedUntil: Instant | null
  /** The person who decided; empty: nobody yet. Stays when the group regresses. */
  actor: string
  note: string
}>

export const openLifecycle: GroupLifecycle = {
  state: 'open',
  changedAt: null,
  mutedUntil: null,
  actor: '',
  note: '',
}

/** The lifecycle at a time: a mute that ended leaves the group open. */
export function readLifecycleAt(stored: GroupLifecycle, now: Instant): GroupLifecycle {
  const { state, mutedUntil } = stored
  if (state !== 'muted' || mutedUntil === null || mutedUntil > now) return stored
  return { ...stored, state: 'open', changedAt: mutedUntil, mutedUntil: null }
}

/** Whether a group asks for attention: nobody looks at it, and nobody silenced it. */
export function needsAttention({ state }: GroupLifecycle): boolean {
  return state === 'open' || state === 'regressed'
}
