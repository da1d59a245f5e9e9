/**
 * The part of a filter that the counts of letters can answer, as a list of conditions. Each store prints the
 * conditions in its own SQL (counts/count-conditions.ts), for the tables and columns that a statement reads.
 */
import { anyClass } from '../../../core/dead-letters/cause.ts'
import type { ListedState } from '../../contract/items.ts'
import { type CountedFilter, redrivesCounted } from '../../contract/letters.ts'

/** A letter matches a list if its value is in the list. `redrives`: as counted, both bounds included. */
export type CountCondition =
  | Readonly<{ on: 'queue'; queues: readonly string[] } | { on: 'queue'; namespaces: readonly string[] }>
  | Readonly<{ on: 'group'; groupIds: readonly number[] }>
  | Readonly<{ on: GroupField; values: readonly string[] }>
  | Readonly<{ on: 'state'; states: readonly ListedState[] }>
  | Readonly<{ on: 'retryCount'; min?: number; max?: number }>

/** The fields that all letters of a group share. */
export type GroupField = 'origin' | 'errorCode' | 'slug' | 'errorClass'

/**
 * `isClassChecked`: each letter that is found is compared with the error classes as well. Then groups whose
 * letters may have any class match too.
 */
export function readConditions(filter: CountedFilter, isClassChecked = false): CountCondition[] {
  const { queues, namespaces, groupIds, origins, errorCodes, slugs, errorClasses, states, retryCount } =
    filter
  const conditions: CountCondition[] = []
  if (queues !== undefined) conditions.push({ on: 'queue', queues })
  if (namespaces !== undefined) conditions.push({ on: 'queue', namespaces })
  if (groupIds !== undefined) conditions.push({ on: 'group', groupIds })
  if (origins !== undefined) conditions.push({ on: 'origin', values: origins })
  if (errorCodes !== undefined) conditions.push({ on: 'errorCode', values: errorCodes })
  if (slugs !== undefined) conditions.push({ on: 'slug', values: slugs })
  if (errorClasses !== undefined) {
    const hasOthers = isClassChecked && errorClasses.length > 0
    conditions.push({ on: 'errorClass', values: hasOthers ? [...errorClasses, anyClass] : errorClasses })
  }
  if (states !== undefined) conditions.push({ on: 'state', states })
  if (retryCount !== undefined) conditions.push({ on: 'retryCount', ...boundCounted(retryCount) })
  return conditions
}

/** Whether the filter has a condition that only the group of a letter answers. */
export function hasGroupConditions({ origins, errorCodes, slugs, errorClasses }: CountedFilter): boolean {
  return [origins, errorCodes, slugs, errorClasses].some((list) => list !== undefined)
}

/** The number of redrives under which a letter is counted: `redrivesCounted` or more count as one number. */
export function countRedrives(redrives: number): number {
  return Math.min(redrives, redrivesCounted)
}

/** Whether the counts alone answer which letters have these numbers of redrives. */
export function areRedrivesCounted(redrives: CountedFilter['retryCount']): boolean {
  const { min = 0, max = 0 } = redrives ?? {}
  return min <= redrivesCounted && max < redrivesCounted
}

/** The bounds among the counted numbers. An upper bound at or above `redrivesCounted` excludes nothing. */
export function boundCounted({
  min,
  max,
}: NonNullable<CountedFilter['retryCount']>): NonNullable<CountedFilter['retryCount']> {
  return {
    ...(min !== undefined && { min: countRedrives(Math.ceil(min)) }),
    ...(max !== undefined && max < redrivesCounted && { max: Math.floor(max) }),
  }
}
