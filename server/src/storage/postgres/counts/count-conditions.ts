/** Prints the counted conditions of a filter (shared/counted-filter.ts) as SQL. */
import { isStorableText } from '../../../core/text/storable-text.ts'
import type { CountCondition, GroupField } from '../../shared/letters/counted-filter.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { stateCodes } from '../items/rows.ts'

/** Adds a value to the parameters of a statement and returns its name, for example `$3`. */
export type Parameter = (value: unknown) => string

/**
 * The column that a statement has for each kind of condition. Conditions without a column are not printed.
 */
export type ConditionColumns = Readonly<Partial<Record<CountCondition['on'], string>>>

/** For `groups` as `g`: the fields that only a group has. */
export const groupFieldColumns = {
  origin: 'g.origin',
  errorCode: 'g.reason',
  slug: 'g.slug',
  errorClass: 'g.error_class',
} as const satisfies Record<GroupField, string>

/** For `groups` as `g`. */
export const groupColumns = { queue: 'g.queue_id', group: 'g.id', ...groupFieldColumns } as const

/** For `letter_counts` as `c`. */
export const countColumns = {
  queue: 'c.queue_id',
  group: 'c.group_id',
  state: 'c.state',
  retryCount: 'c.redrives',
} as const

export function printConditions(
  conditions: readonly CountCondition[],
  columns: ConditionColumns,
  parameter: Parameter,
): string {
  return listConditions(conditions, columns, parameter).join(' and ') || 'true'
}

export function listConditions(
  conditions: readonly CountCondition[],
  columns: ConditionColumns,
  parameter: Parameter,
): string[] {
  return conditions.flatMap((condition) => {
    const column = columns[condition.on]
    return column === undefined ? [] : printCondition(condition, column, parameter)
  })
}

function printCondition(condition: CountCondition, column: string, parameter: Parameter): string[] {
  switch (condition.on) {
    case 'queue':
      return [`${column} = any (${printQueueIds(condition, parameter)})`]
    case 'group':
      return [`${column} = any (${parameter(encodeInt4s(condition.groupIds.filter(isInt4)))}::int4[])`]
    case 'state': {
      const codes = condition.states.map((state) => stateCodes[state])
      return [`${column} = any (${parameter(encodeInt4s(codes))}::int4[])`]
    }
    case 'retryCount':
      return [
        ...(condition.min === undefined ? [] : [`${column} >= ${condition.min}`]),
        ...(condition.max === undefined ? [] : [`${column} <= ${condition.max}`]),
      ]
    default:
      return [`${column} = any (${printTexts(condition.values, parameter)})`]
  }
}

/** An array of the ids of the named queues, or of the queues in namespaces. */
export function printQueueIds(
  selection: Readonly<{ queues: readonly string[] } | { namespaces: readonly string[] }>,
  parameter: Parameter,
): string {
  const condition =
    'queues' in selection
      ? `q.name = any (${printTexts(selection.queues, parameter)})`
      : `q.namespace = any (${printTexts(selection.namespaces, parameter)})`
  return `array(select q.id from redrive.queues q where ${condition})`
}

/** Leaves out texts that PostgreSQL cannot read: no stored text equals them. */
export function printTexts(list: readonly string[], parameter: Parameter): string {
  return `${parameter(encodeTexts(list.filter(isStorableText)))}::text[]`
}

/** Numbers that are no int4 are the id of no row, and PostgreSQL would reject them. */
export function isInt4(id: number): boolean {
  return Number.isInteger(id) && Math.abs(id) < 2 ** 31
}
