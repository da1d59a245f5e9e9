/**
 * Rules as they are written in the API, in redrive.yaml and in the store. All three have the same fields, so
 * one decoder reads them. In redrive.yaml every scalar is a text, so numbers and booleans are read from texts
 * too.
 */
import { formatDuration, parseDuration } from '../time/duration.ts'
import { usPerSecond } from '../time/instant.ts'
import { findingRules, severities } from '../watching/findings.ts'
import { activeUsDefault, ruleDefaults } from './built-in-rules.ts'
import { alertSeverities } from './notification.ts'
import {
  type AlertCondition,
  type AlertRule,
  type ConditionType,
  groupKinds,
  stoppedStatuses,
} from './rule.ts'

export type RuleProblem = Readonly<{ field: string; message: string }>
export type RuleFields = Readonly<Record<string, unknown>>

const dayUs = 86_400 * usPerSecond
export const ruleBounds = {
  listMax: 100,
  textMax: 500,
  nameMax: 512,
  countMax: 1_000_000_000,
  /** Counts of letters by time are kept for a day. */
  windowUsMax: dayUs - 60 * usPerSecond,
  durationUsMax: 365 * dayUs,
} as const

type Read<T> = Readonly<{ value: T }> | Readonly<{ problem: string }>
type Reader<T> = (value: unknown) => Read<T>

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

export function findRuleNameProblem(name: string): string | undefined {
  if (namePattern.test(name)) return undefined
  return 'the name of a rule has 1 to 100 letters, digits, ".", "_" or "-", and starts with a letter or a digit'
}

/** `base`: the built-in rule of this name, whose values apply to fields that are left out. */
export function decodeRule(
  name: string,
  namespace: string,
  fields: RuleFields,
  base?: AlertRule,
): Readonly<{ rule: AlertRule } | { problems: readonly RuleProblem[] }> {
  const reading = new Reading(fields, '')
  reading.only(ruleFields)
  const { condition: given } = fields
  const fallback: Omit<AlertRule, 'name' | 'condition'> = base ?? ruleDefaults
  const rule = {
    name,
    namespace,
    description: reading.take('description', readText, fallback.description),
    isEnabled: reading.take('is_enabled', readBoolean, fallback.isEnabled),
    severity: reading.take('severity', choice(alertSeverities), fallback.severity),
    holdUs: reading.take('hold', duration(0), fallback.holdUs),
    clearAfterUs: reading.take('clear_after', duration(0), fallback.clearAfterUs),
    groupWaitUs: reading.take('group_wait', duration(0), fallback.groupWaitUs),
    repeatUs: reading.take('repeat_interval', orNever(duration(60 * usPerSecond)), fallback.repeatUs),
    channels: reading.take('channels', nullable(readNames), fallback.channels),
    condition:
      given === undefined && base !== undefined ? base.condition : readCondition(given, reading.problems),
  }
  const { condition } = rule
  return reading.problems.length > 0 || condition === null
    ? { problems: reading.problems }
    : { rule: { ...rule, condition } }
}

const ruleFields = [
  'description',
  'is_enabled',
  'severity',
  'condition',
  'hold',
  'clear_after',
  'group_wait',
  'repeat_interval',
  'channels',
]

/** The fields of a rule without its name and namespace. `decodeRule` reads them again. */
export function encodeRule(
  rule: AlertRule,
): Record<string, unknown> & { condition: Record<string, unknown> } {
  return {
    description: rule.description,
    is_enabled: rule.isEnabled,
    severity: rule.severity,
    condition: encodeCondition(rule.condition),
    hold: formatDuration(rule.holdUs),
    clear_after: formatDuration(rule.clearAfterUs),
    group_wait: formatDuration(rule.groupWaitUs),
    repeat_interval: rule.repeatUs === null ? null : formatDuration(rule.repeatUs),
    channels: rule.channels === null ? null : [...rule.channels],
  }
}

type ConditionOf<T extends ConditionType> = Extract<AlertCondition, { type: T }>
type Conditions = {
  readonly [T in ConditionType]: Readonly<{
    fields: readonly string[]
    read(reading: Reading): ConditionOf<T>
    write(condition: ConditionOf<T>): Record<string, unknown>
  }>
}

const queueFields = ['queues', 'letter_classes', 'excluded_letter_classes']
const readQueues = (reading: Reading) => ({
  queues: reading.take('queues', readNames, []),
  letterClasses: reading.take('letter_classes', readNames, []),
  excludedLetterClasses: reading.take('excluded_letter_classes', readNames, []),
})
const writeQueues = (condition: ConditionOf<'letters' | 'oldest-letter' | 'inflow' | 'group'>) => ({
  queues: [...condition.queues],
  letter_classes: [...condition.letterClasses],
  excluded_letter_classes: [...condition.excludedLetterClasses],
})

/** The fields of each condition. No other place lists them. */
const conditions: Conditions = {
  letters: {
    fields: ['count_min', ...queueFields],
    read: (reading) => ({
      type: 'letters',
      countMin: reading.take('count_min', readCount, 1),
      ...readQueues(reading),
    }),
    write: (condition) => ({ count_min: condition.countMin, ...writeQueues(condition) }),
  },
  'oldest-letter': {
    fields: ['age', ...queueFields],
    read: (reading) => ({
      type: 'oldest-letter',
      ageUs: reading.require('age', duration(usPerSecond), 0),
      ...readQueues(reading),
    }),
    write: (condition) => ({ age: formatDuration(condition.ageUs), ...writeQueues(condition) }),
  },
  inflow: {
    fields: ['count_min', 'window', ...queueFields],
    read: (reading) => ({
      type: 'inflow',
      countMin: reading.require('count_min', readCount, 1),
      windowUs: reading.require('window', duration(usPerSecond, ruleBounds.windowUsMax), 0),
      ...readQueues(reading),
    }),
    write: (condition) => ({
      count_min: condition.countMin,
      window: formatDuration(condition.windowUs),
      ...writeQueues(condition),
    }),
  },
  group: {
    fields: ['kinds', 'active_for', ...queueFields],
    read: (reading) => ({
      type: 'group',
      kinds: reading.require('kinds', choices(groupKinds), []),
      activeUs: reading.take('active_for', duration(60 * usPerSecond), activeUsDefault),
      ...readQueues(reading),
    }),
    write: (condition) => ({
      kinds: [...condition.kinds],
      active_for: formatDuration(condition.activeUs),
      ...writeQueues(condition),
    }),
  },
  finding: {
    fields: ['findings', 'finding_severity', 'subjects'],
    read: (reading) => ({
      type: 'finding',
      findings: reading.require('findings', choices(findingRules), []),
      findingSeverity: reading.take('finding_severity', nullable(choice(severities)), null),
      subjects: reading.take('subjects', readNames, []),
    }),
    write: ({ findings, findingSeverity, subjects }) => ({
      findings: [...findings],
      finding_severity: findingSeverity,
      subjects: [...subjects],
    }),
  },
  consumer: {
    fields: ['statuses'],
    read: (reading) => ({
      type: 'consumer',
      statuses: reading.take('statuses', choices(stoppedStatuses), stoppedStatuses),
    }),
    write: ({ statuses }) => ({ statuses: [...statuses] }),
  },
  'kafka-retention': { fields: [], read: () => ({ type: 'kafka-retention' }), write: () => ({}) },
  'count-drift': { fields: [], read: () => ({ type: 'count-drift' }), write: () => ({}) },
}
export const conditionTypes = Object.keys(conditions) as readonly ConditionType[]

function readCondition(given: unknown, problems: RuleProblem[]): AlertCondition | null {
  const fields = isRecord(given) ? given : {}
  const type = conditionTypes.find((each) => each === fields.type)
  if (type === undefined) {
    problems.push({ field: 'condition.type', message: `must be ${conditionTypes.join(', ')}` })
    return null
  }
  const reading = new Reading(fields, 'condition.', problems)
  reading.only(['type', ...conditions[type].fields])
  return conditions[type].read(reading)
}

function encodeCondition<T extends ConditionType>(condition: ConditionOf<T>): Record<string, unknown> {
  // The table has the writer of each type of condition, which the type of an indexed union cannot express.
  const { write } = conditions[condition.type] as unknown as Conditions[T]
  return { type: condition.type, ...write(condition) }
}

/** Reads fields and collects the problems of all of them. */
class Reading {
  readonly problems: RuleProblem[]
  readonly #fields: RuleFields
  readonly #path: string

  constructor(fields: RuleFields, path: string, problems: RuleProblem[] = []) {
    this.#fields = fields
    this.#path = path
    this.problems = problems
  }

  only(known: readonly string[]): void {
    for (const field of Object.keys(this.#fields)) {
      if (!known.includes(field)) this.#refuse(field, `is not known; the fields are ${known.join(', ')}`)
    }
  }

  /** A field that can be left out. */
  take<T>(field: string, read: Reader<T>, fallback: T): T {
    const value = this.#fields[field]
    if (value === undefined) return fallback
    const found = read(value)
    if ('value' in found) return found.value
    this.#refuse(field, found.problem)
    return fallback
  }

  /** `fallback` only continues the reading after the problem. */
  require<T>(field: string, read: Reader<T>, fallback: T): T {
    if (this.#fields[field] === undefined) this.#refuse(field, 'is missing')
    return this.take(field, read, fallback)
  }

  #refuse(field: string, message: string): void {
    this.problems.push({ field: `${this.#path}${field}`, message })
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const readText: Reader<string> = (value) =>
  typeof value === 'string' &&
  value.length <= ruleBounds.textMax &&
  value.isWellFormed() &&
  !value.includes('\0')
    ? { value }
    : { problem: `must be a text of up to ${ruleBounds.textMax} characters` }

const readBoolean: Reader<boolean> = (value) => {
  if (typeof value === 'boolean') return { value }
  return value === 'true' || value === 'false'
    ? { value: value === 'true' }
    : { problem: 'must be true or false' }
}

const readCount: Reader<number> = (given) => {
  const value = typeof given === 'string' && /^\d+$/.test(given) ? Number(given) : given
  const { countMax } = ruleBounds
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= countMax
    ? { value }
    : { problem: `must be a whole number from 1 to ${countMax}` }
}

function duration(usMin: number, usMax: number = ruleBounds.durationUsMax): Reader<number> {
  const problem = `must be a duration from ${formatDuration(usMin)} to ${formatDuration(usMax)}, such as 90s`
  return (value) => {
    if (typeof value !== 'string' || value.length > 32) return { problem }
    try {
      const us = parseDuration(value)
      return us >= usMin && us <= usMax ? { value: us } : { problem }
    } catch {
      return { problem }
    }
  }
}

function nullable<T>(read: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? { value: null } : read(value))
}

/** A setting cannot be null, so redrive.yaml has the word `never`. */
function orNever<T>(read: Reader<T>): Reader<T | null> {
  return (value) => (value === null || value === 'never' ? { value: null } : read(value))
}

function choice<const C extends string>(allowed: readonly C[]): Reader<C> {
  return (value) => {
    const found = allowed.find((each) => each === value)
    return found === undefined ? { problem: `must be ${allowed.join(', ')}` } : { value: found }
  }
}

/** At least one of them. */
function choices<const C extends string>(allowed: readonly C[]): Reader<readonly C[]> {
  return (value) => {
    const found = Array.isArray(value) ? allowed.filter((each) => value.includes(each)) : []
    const isKnown = Array.isArray(value) && value.every((each) => allowed.includes(each))
    return isKnown && found.length > 0
      ? { value: found }
      : { problem: `must be a list of at least one of ${allowed.join(', ')}` }
  }
}

const readNames: Reader<readonly string[]> = (value) => {
  const { listMax, nameMax } = ruleBounds
  const isName = (each: unknown): each is string =>
    typeof each === 'string' &&
    each !== '' &&
    each.length <= nameMax &&
    each.isWellFormed() &&
    !each.includes('\0')
  return Array.isArray(value) && value.length <= listMax && value.every(isName)
    ? { value: [...new Set(value)] }
    : { problem: `must be a list of up to ${listMax} names` }
}
