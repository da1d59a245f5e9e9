/**
 * Rules of alerts. A rule has a condition, which is true or false for each of its **subjects**: a dead queue,
 * a group, a worker, a consumer group, a webhook consumer or a topic. An alert is the condition of a rule
 * that is true for one subject.
 *
 * A rule of the namespace `_system` is about the subjects of all namespaces, every other rule only about
 * those of its own namespace.
 */
import type { Finding, FindingRule, Severity } from '../watching/findings.ts'
import type { AlertSeverity } from './notification.ts'

/** Which dead queues a condition is about. An empty list selects all. A name can end in `*`. */
export type QueueSelection = Readonly<{
  queues: readonly string[]
  letterClasses: readonly string[]
  excludedLetterClasses: readonly string[]
}>

export const groupKinds = ['new', 'regressed'] as const
export type GroupKind = (typeof groupKinds)[number]
export const stoppedStatuses = ['held', 'disabled'] as const
export type StoppedStatus = (typeof stoppedStatuses)[number]

export type AlertCondition =
  /** A dead queue has at least `countMin` unresolved letters. */
  | (Readonly<{ type: 'letters'; countMin: number }> & QueueSelection)
  /** The oldest open letter of a dead queue died at least `ageUs` ago. */
  | (Readonly<{ type: 'oldest-letter'; ageUs: number }> & QueueSelection)
  /** At least `countMin` open letters of a dead queue died within `windowUs`. */
  | (Readonly<{ type: 'inflow'; countMin: number; windowUs: number }> & QueueSelection)
  /** A group is new or regressed, until a person decides about it, for `activeUs` at most. */
  | (Readonly<{ type: 'group'; kinds: readonly GroupKind[]; activeUs: number }> & QueueSelection)
  /** A finding about a worker, a consumer group or Redis. */
  | Readonly<{
      type: 'finding'
      findings: readonly FindingRule[]
      /** Only findings with this severity; null: with every one. */
      findingSeverity: Severity | null
      /** Subjects, which can end in `*`. An empty list selects all. */
      subjects: readonly string[]
    }>
  /** A webhook consumer gets no pushes, because its breaker is open or because it was disabled. */
  | Readonly<{ type: 'consumer'; statuses: readonly StoppedStatus[] }>
  /** Kafka soon removes records of a dead-letter topic that are not read yet. */
  | Readonly<{ type: 'kafka-retention' }>
  /** The last comparison of counts with their rows found wrong counts. */
  | Readonly<{ type: 'count-drift' }>
export type ConditionType = AlertCondition['type']

export type AlertRule = Readonly<{
  name: string
  namespace: string
  description: string
  isEnabled: boolean
  severity: AlertSeverity
  condition: AlertCondition
  /** How long the condition must be true before the alert fires. */
  holdUs: number
  /** How long the condition must be false before the alert is resolved. */
  clearAfterUs: number
  /** Alerts that fire within this time are one notification. */
  groupWaitUs: number
  /** How often an alert that still fires is notified again; null: never. */
  repeatUs: number | null
  /** The names of channels; null: all channels of the namespace of the rule. */
  channels: readonly string[] | null
}>

export const ruleSources = ['built-in', 'api', 'configuration'] as const
/** Where a rule is defined. A rule of the configuration cannot be changed through the API. */
export type RuleSource = (typeof ruleSources)[number]
export type SourcedRule = AlertRule & Readonly<{ source: RuleSource; version: number }>

/** `*` at the end of a pattern stands for any ending. */
export function matchesPattern(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : pattern === text
}

function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.length === 0 || patterns.some((pattern) => matchesPattern(pattern, text))
}

export function selectsQueue(
  selection: QueueSelection,
  { name, letterClass }: Readonly<{ name: string; letterClass: string }>,
): boolean {
  return (
    matchesAny(selection.queues, name) &&
    (selection.letterClasses.length === 0 || selection.letterClasses.includes(letterClass)) &&
    !selection.excludedLetterClasses.includes(letterClass)
  )
}

export function selectsFinding(
  condition: Extract<AlertCondition, { type: 'finding' }>,
  { rule, severity, subject }: Pick<Finding, 'rule' | 'severity' | 'subject'>,
): boolean {
  const { findings, findingSeverity, subjects } = condition
  return (
    findings.includes(rule) &&
    (findingSeverity === null || findingSeverity === severity) &&
    matchesAny(subjects, subject)
  )
}
