/** The part of a filter that the counts of letters know, as conditions on them and on their groups. */
import { anyClass } from '../../../core/cause.ts'
import { type CountedFilter, redrivesCounted } from '../../contract/letters.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import { stateCodes } from '../items/rows.ts'

export type Parameter = (value: unknown) => string

/** On `letter_counts` as `c`. */
export function cellConditions(filter: CountedFilter, parameter: Parameter): string {
  const { queues, states, groupIds, redrives } = filter
  const conditions: string[] = []
  if (queues !== undefined) conditions.push(`c.queue_id = any (${queueIds(queues, parameter)})`)
  if (groupIds !== undefined) {
    conditions.push(`c.group_id = any (${parameter(int4s(groupIds.filter(isInt4)))}::int4[])`)
  }
  if (states !== undefined) {
    conditions.push(`c.state = any (${parameter(int4s(states.map((state) => stateCodes[state])))}::int4[])`)
  }
  const { min, max } = redrives ?? {}
  if (min !== undefined) conditions.push(`c.redrives >= ${Math.min(Math.ceil(min), redrivesCounted)}`)
  if (max !== undefined && max < redrivesCounted) conditions.push(`c.redrives <= ${Math.floor(max)}`)
  return conditions.join(' and ') || 'true'
}

/**
 * On `groups` as `g`: what only a group tells. `mayHaveClass`: also those groups whose letters are of any class, where
 * each letter is looked at.
 */
export function groupConditions(filter: CountedFilter, parameter: Parameter, mayHaveClass = false): string {
  const named = [
    ['origin', filter.origins],
    ['reason', filter.reasons],
    ['slug', filter.slugs],
    ['error_class', filter.errorClasses],
  ] as const
  const conditions: string[] = []
  for (const [column, list] of named) {
    if (list === undefined) continue
    const values = list.filter(isText)
    if (column === 'error_class' && mayHaveClass && list.length > 0) values.push(anyClass)
    conditions.push(`g.${column} = any (${parameter(texts(values))}::text[])`)
  }
  return conditions.join(' and ') || 'true'
}

export function hasGroupConditions({ origins, reasons, slugs, errorClasses }: CountedFilter): boolean {
  return [origins, reasons, slugs, errorClasses].some((list) => list !== undefined)
}

/** On `groups` as `g`: which groups there are to look at, with letters or without. */
export function emptyGroupConditions(filter: CountedFilter, parameter: Parameter): string {
  const conditions = [groupConditions(filter, parameter)]
  const { queues, groupIds } = filter
  if (queues !== undefined) conditions.push(`g.queue_id = any (${queueIds(queues, parameter)})`)
  if (groupIds !== undefined) {
    conditions.push(`g.id = any (${parameter(int4s(groupIds.filter(isInt4)))}::int4[])`)
  }
  return conditions.join(' and ')
}

export function queueIds(queues: readonly string[], parameter: Parameter): string {
  const names = parameter(texts(queues.filter(isText)))
  return `array(select q.id from redrive.queues q where q.name = any (${names}::text[]))`
}

/** What is none is the name of nothing, and no text to the database. */
export function isText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

function isInt4(id: number): boolean {
  return Number.isInteger(id) && Math.abs(id) < 2 ** 31
}
