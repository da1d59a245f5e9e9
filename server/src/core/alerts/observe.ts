/** Finds the subjects for which the condition of a rule is true. */
import { systemNamespace } from '../items/queue.ts'
import { formatDuration } from '../time/duration.ts'
import type { Alert, Observation, Seen } from './alert.ts'
import { type AlertFacts, type GroupFact, nameInflow, type QueueFact } from './facts.ts'
import { type AlertCondition, type AlertRule, selectsFinding, selectsQueue } from './rule.ts'

/** The subject of the alert about all subjects beyond a limit. */
export const othersSubject = '*'

type Condition<T extends AlertCondition['type']> = Extract<AlertCondition, { type: T }>
type Found = Omit<Observation, 'groupId' | 'groupTitle' | 'queue' | 'since'> & Partial<Observation>

const found = (given: Found): Observation => ({
  queue: null,
  groupId: null,
  groupTitle: null,
  since: null,
  ...given,
})

/** `tracked`: the alerts of the rule, which decide how long an alert about a group lasts. */
export function observe(rule: AlertRule, facts: AlertFacts, tracked: readonly Alert[]): Observation[] {
  const all = observeAll(rule.condition, facts, tracked)
  return rule.namespace === systemNamespace
    ? all
    : all.filter(({ namespace }) => namespace === rule.namespace)
}

function observeAll(condition: AlertCondition, facts: AlertFacts, tracked: readonly Alert[]): Observation[] {
  switch (condition.type) {
    case 'letters':
      return observeLetters(condition, facts)
    case 'oldest-letter':
      return observeOldest(condition, facts)
    case 'inflow':
      return observeInflow(condition, facts)
    case 'group':
      return observeGroups(condition, facts, tracked)
    case 'finding':
      return observeFindings(condition, facts)
    case 'consumer':
      return observeConsumers(condition, facts)
    case 'kafka-retention':
      return observeTopics(facts)
    case 'count-drift':
      return observeDrift(facts)
  }
}

/** The knowledge about the subject of an alert that is not among the observations. */
export function seeAbsent(rule: AlertRule, facts: AlertFacts, alert: Alert): Seen {
  const { condition } = rule
  if (condition.type === 'finding' && facts.areFindingsCut) return 'unknown'
  const isKafka =
    condition.type === 'kafka-retention' ||
    (condition.type === 'finding' && condition.findings.includes('lag'))
  const isUnknown = facts.unknownClusters.some((cluster) => alert.subject.startsWith(`${cluster}/`))
  return isKafka && isUnknown ? 'unknown' : null
}

/** The queues about which this condition needs more than counts. */
export function selectCandidates(
  condition: Condition<'oldest-letter' | 'inflow'>,
  queues: readonly QueueFact[],
): QueueFact[] {
  const countMin = condition.type === 'inflow' ? condition.countMin : 1
  return queues.filter((queue) => queue.unresolvedCount >= countMin && selectsQueue(condition, queue))
}

function observeLetters(condition: Condition<'letters'>, { queues }: AlertFacts): Observation[] {
  return queues
    .filter((queue) => queue.unresolvedCount >= condition.countMin && selectsQueue(condition, queue))
    .map(({ name, namespace, unresolvedCount: count }) =>
      found({
        namespace,
        subject: name,
        queue: name,
        count,
        summary: `dead queue ${name} has ${countLetters(count)}`,
      }),
    )
}

function observeOldest(condition: Condition<'oldest-letter'>, facts: AlertFacts): Observation[] {
  return selectCandidates(condition, facts.queues).flatMap(({ name, namespace, unresolvedCount: count }) => {
    const diedAt = facts.oldest.get(name)
    if (diedAt === undefined || facts.now - diedAt < condition.ageUs) return []
    const since = diedAt + condition.ageUs
    const summary = `the oldest open letter of dead queue ${name} died more than ${formatDuration(condition.ageUs)} ago`
    return [found({ namespace, subject: name, queue: name, count, summary, since })]
  })
}

function observeInflow(condition: Condition<'inflow'>, facts: AlertFacts): Observation[] {
  const { countMin, windowUs } = condition
  return selectCandidates(condition, facts.queues).flatMap(({ name, namespace }) => {
    const count = facts.inflow.get(nameInflow(name, windowUs)) ?? 0
    if (count < countMin) return []
    const summary = `${countLetters(count)} of dead queue ${name} died within ${formatDuration(windowUs)}`
    return [found({ namespace, subject: name, queue: name, count, summary })]
  })
}

/** A notice starts an alert; the alert lasts until somebody decides about the group. */
function observeGroups(
  condition: Condition<'group'>,
  facts: AlertFacts,
  tracked: readonly Alert[],
): Observation[] {
  const alerts = new Map(tracked.map((alert) => [alert.groupId, alert]))
  const groups = facts.groups.filter((group) =>
    isGroupActive(condition, group, alerts.get(group.id), facts.now),
  )
  const others = tracked
    .filter(
      ({ subject, startedAt }) => subject === othersSubject && facts.now - startedAt < condition.activeUs,
    )
    .map(({ namespace, subject, count, summary }) => found({ namespace, subject, count, summary }))
  return [...groups.map((group) => showGroup(group, alerts.get(group.id))), ...others]
}

function isGroupActive(
  condition: Condition<'group'>,
  group: GroupFact,
  alert: Alert | undefined,
  now: number,
): boolean {
  const { notice, state } = group
  const isNoticed =
    notice !== null && condition.kinds.includes(notice.kind) && selectsQueue(condition, toQueue(group))
  const isOpen = state === 'open' || state === 'regressed'
  if (isNoticed) return isOpen
  return alert !== undefined && isOpen && group.count > 0 && now - alert.startedAt < condition.activeUs
}

function toQueue({ queue, letterClass }: GroupFact) {
  return { name: queue, letterClass }
}

function showGroup(group: GroupFact, alert: Alert | undefined): Observation {
  const { id, queue, namespace, title, count, state, notice } = group
  const kind = notice?.kind ?? (state === 'regressed' ? 'regressed' : 'new')
  const text =
    kind === 'regressed'
      ? `group ${id} of dead queue ${queue} was resolved and got a letter again`
      : `group ${id} of dead queue ${queue} is new`
  const since = alert?.startedAt ?? notice?.at ?? null
  return found({
    namespace,
    subject: `group/${id}`,
    queue,
    groupId: id,
    groupTitle: title,
    count,
    summary: text,
    since,
  })
}

function observeFindings(condition: Condition<'finding'>, { findings }: AlertFacts): Observation[] {
  return findings
    .filter((finding) => selectsFinding(condition, finding))
    .map(({ namespace, subject, since, message: summary }) =>
      found({ namespace, subject, count: null, summary, since }),
    )
}

function observeConsumers({ statuses }: Condition<'consumer'>, { consumers }: AlertFacts): Observation[] {
  return consumers
    .filter(({ status }) => statuses.includes(status))
    .map(({ channelId, consumerId, status, since }) => {
      const reason = status === 'held' ? 'its breaker is open' : 'it was disabled'
      return found({
        namespace: systemNamespace,
        subject: `${channelId}/${consumerId}`,
        count: null,
        summary: `consumer ${consumerId} of channel ${channelId} gets no pushes: ${reason}`,
        since,
      })
    })
}

function observeTopics({ topics }: AlertFacts): Observation[] {
  return topics
    .filter(({ isLosingSoon }) => isLosingSoon)
    .map(({ cluster, topic, queue, unreadCount: count }) =>
      found({
        namespace: systemNamespace,
        subject: `${cluster}/${topic}`,
        queue,
        count,
        summary: `Kafka soon removes some of ${count} unread records of topic ${topic} in cluster ${cluster}`,
      }),
    )
}

function observeDrift({ countDrift: count }: AlertFacts): Observation[] {
  if (count === 0) return []
  const summary = `the last comparison of counts with their rows repaired ${count} ${count === 1 ? 'difference' : 'differences'}`
  return [found({ namespace: systemNamespace, subject: 'counts', count, summary })]
}

function countLetters(count: number): string {
  return count === 1 ? '1 letter' : `${count} letters`
}
