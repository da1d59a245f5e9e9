/** Limits of the lag of consumer groups, by topic. */
import type { Instant } from '../time/instant.ts'
import type { Finding, Severity } from './findings.ts'

/** `topic`: a name, or a name with `*` at its end. The first entry that matches decides. */
export type LagThreshold = Readonly<{ topic: string; warning: number; critical: number }>

export type GroupLagFact = Readonly<{ cluster: string; group: string; topic: string; lag: number }>

export function findThreshold(thresholds: readonly LagThreshold[], topic: string): LagThreshold | undefined {
  return thresholds.find((each) =>
    each.topic.endsWith('*') ? topic.startsWith(each.topic.slice(0, -1)) : each.topic === topic,
  )
}

/** Null: the lag is not above a limit. */
export function judgeLag(
  { topic, lag }: Pick<GroupLagFact, 'topic' | 'lag'>,
  thresholds: readonly LagThreshold[],
): Readonly<{ severity: Severity; limit: number }> | null {
  const threshold = findThreshold(thresholds, topic)
  if (threshold === undefined || lag <= threshold.warning) return null
  return lag > threshold.critical
    ? { severity: 'CRITICAL', limit: threshold.critical }
    : { severity: 'WARNING', limit: threshold.warning }
}

export function nameLag({ cluster, group, topic }: Omit<GroupLagFact, 'lag'>): string {
  return `${cluster}/${group}/${topic}`
}

/** `sinceOf`: since when the finding with this severity exists; a new one exists since now. */
export function findLags(
  lags: readonly GroupLagFact[],
  thresholds: readonly LagThreshold[],
  sinceOf: (subject: string, severity: Severity) => Instant,
): readonly Finding[] {
  return lags.flatMap((each) => {
    const judged = judgeLag(each, thresholds)
    if (judged === null) return []
    const { severity, limit } = judged
    const subject = nameLag(each)
    const message = `group ${each.group} of cluster ${each.cluster} lags ${each.lag} records behind topic ${each.topic}, more than ${limit}`
    const since = sinceOf(subject, severity)
    return [{ rule: 'lag', severity, subject, namespace: '_system', since, message } as const]
  })
}
