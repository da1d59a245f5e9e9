/** Decides what a PUT of a producer, channel or consumer changes. */
import { toWholeSecond } from '../time/http-date.ts'
import { type Instant, usPerSecond } from '../time/instant.ts'

/**
 * The condition of a change. `any`: none, for the configuration file. `unmodified-since`: the value of the
 * header; null: the request has no such header; `unreadable`: it is not a date.
 */
export type ChangeCondition =
  | Readonly<{ kind: 'any' }>
  | Readonly<{ kind: 'unmodified-since'; at: Instant | 'unreadable' | null }>

export type ConditionRefusal = 'condition-missing' | 'condition-failed'

export type PutDecision = Readonly<
  | { outcome: 'create'; changedAt: Instant }
  | { outcome: 'update'; changedAt: Instant }
  | { outcome: 'unchanged' }
  | { outcome: ConditionRefusal }
>

/** Undefined: the row may be changed. */
export function checkCondition(changedAt: Instant, condition: ChangeCondition): ConditionRefusal | undefined {
  if (condition.kind === 'any') return undefined
  if (condition.at === null) return 'condition-missing'
  const isCurrent = condition.at !== 'unreadable' && toWholeSecond(condition.at) === toWholeSecond(changedAt)
  return isCurrent ? undefined : 'condition-failed'
}

/** `before`: the stored row, if there is one. `isSame`: the PUT would change nothing in it. */
export function decidePut(
  before: Readonly<{ changedAt: Instant }> | undefined,
  isSame: boolean,
  condition: ChangeCondition,
  now: Instant,
): PutDecision {
  if (before === undefined) return { outcome: 'create', changedAt: toWholeSecond(now) }
  const refusal = checkCondition(before.changedAt, condition)
  if (refusal !== undefined) return { outcome: refusal }
  if (isSame) return { outcome: 'unchanged' }
  return { outcome: 'update', changedAt: nextChangedAt(before.changedAt, now) }
}

/**
 * Two changes in one second must not have the same time: the condition of a client that saw only the first
 * one would hold, and the client would overwrite the second.
 */
function nextChangedAt(before: Instant, now: Instant): Instant {
  return Math.max(toWholeSecond(now), toWholeSecond(before) + usPerSecond)
}
