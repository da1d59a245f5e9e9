/** Prints the counted conditions of a filter (shared/counted-filter.ts) as SQL. */
import type { CountCondition, GroupField } from '../../shared/letters/counted-filter.ts'
import type { Bound, Database } from '../connection/database.ts'
import { listedCodes } from '../items/rows.ts'
import { readSelectedQueueIds } from '../queues/queue-names.ts'

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

/** For `letter_counts` as `c`: the fields that a group has too. */
export const countGroupColumns = { queue: 'c.queue_id', group: 'c.group_id' } as const

/** For `letter_counts` as `c`: the fields that letters of one group differ in. */
export const countStateColumns = { state: 'c.state', retryCount: 'c.redrives' } as const

export type PrintedConditions = Readonly<{ where: string; values: readonly Bound[] }>

export function printConditions(
  database: Database,
  conditions: readonly CountCondition[],
  columns: ConditionColumns,
): PrintedConditions {
  const printed = conditions.flatMap((condition) => {
    const column = columns[condition.on]
    return column === undefined ? [] : printCondition(database, condition, column)
  })
  return {
    where: printed.map(({ where }) => where).join(' and ') || 'true',
    values: printed.flatMap(({ values }) => values),
  }
}

function printCondition(
  database: Database,
  condition: CountCondition,
  column: string,
): PrintedConditions | [] {
  switch (condition.on) {
    case 'queue':
      return printList(column, readSelectedQueueIds(database, condition))
    case 'group':
      return printList(column, condition.groupIds)
    case 'state': {
      // In one order, so that the many ways to ask share few prepared statements.
      const codes = [...new Set(condition.states.map((state) => listedCodes[state]))].sort()
      return { where: `${column} in (${codes.join(', ')})`, values: [] }
    }
    case 'retryCount':
      return printRange(column, condition.min, condition.max)
    default:
      return printList(column, condition.values)
  }
}

function printList(column: string, list: readonly (string | number)[]): PrintedConditions {
  return { where: `${column} in (select value from json_each(?))`, values: [JSON.stringify(list)] }
}

function printRange(
  column: string,
  min: number | undefined,
  max: number | undefined,
): PrintedConditions | [] {
  const parts: string[] = []
  if (min !== undefined) parts.push(`${column} >= ?`)
  if (max !== undefined) parts.push(`${column} <= ?`)
  if (parts.length === 0) return []
  return { where: parts.join(' and '), values: [min, max].filter((bound) => bound !== undefined) }
}
