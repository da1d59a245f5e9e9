/** Keeps the number of alerts of a rule bounded: subjects beyond a limit become one alert. */
import type { Alert, Observation } from './alert.ts'
import { othersSubject } from './observe.ts'
import type { AlertRule } from './rule.ts'

export const alertLimits = {
  /** Subjects of one rule in one namespace that have an alert of their own. */
  subjectsMax: 100,
  /** Subjects of one rule in all namespaces. */
  subjectsTotalMax: 1_000,
} as const

/**
 * Subjects that have an alert keep it, so that alerts do not change places. The others beyond the limit are
 * counted in one observation of the namespace, or of the namespace of the rule if there are too many
 * namespaces.
 */
export function limitObservations(
  rule: Pick<AlertRule, 'name' | 'namespace'>,
  observations: readonly Observation[],
  tracked: readonly Alert[],
  limits: Readonly<{ subjectsMax: number; subjectsTotalMax: number }> = alertLimits,
): Observation[] {
  const known = new Set(tracked.map(keyOf))
  const ordered = [
    ...observations.filter((each) => known.has(keyOf(each))),
    ...observations.filter((each) => !known.has(keyOf(each))),
  ]
  const kept: Observation[] = []
  const keptIn = new Map<string, number>()
  const others = new Map<string, number>()
  for (const each of ordered) {
    const { namespace } = each
    const count = keptIn.get(namespace) ?? 0
    if (each.subject === othersSubject)
      others.set(namespace, (others.get(namespace) ?? 0) + (each.count ?? 0))
    else if (count < limits.subjectsMax && kept.length < limits.subjectsTotalMax) {
      kept.push(each)
      keptIn.set(namespace, count + 1)
    } else {
      const where = kept.length < limits.subjectsTotalMax ? namespace : rule.namespace
      others.set(where, (others.get(where) ?? 0) + 1)
    }
  }
  return [...kept, ...[...others].map(([namespace, count]) => toSummary(rule, namespace, count))]
}

function keyOf({ namespace, subject }: Pick<Alert, 'namespace' | 'subject'>): string {
  return `${namespace}\n${subject}`
}

function toSummary({ name }: Pick<AlertRule, 'name'>, namespace: string, count: number): Observation {
  return {
    namespace,
    subject: othersSubject,
    queue: null,
    groupId: null,
    groupTitle: null,
    count,
    summary: `rule ${name} holds for ${count} more subjects, which have no alert of their own`,
    since: null,
  }
}
