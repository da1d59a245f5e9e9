/** Finds the groups that a filter means: groups can be part of another one, and causes span groups. */
import type { CountedFilter } from '../../contract/letters.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'

const memberIdsSql = `with roots as (
    select distinct coalesce(g.merged_into, g.id) as id from groups g
    where g.id in (select value from json_each(?)))
  select id from roots union select g.id from groups g join roots r on g.merged_into = r.id`
/** The key of a cause may have been merged into another one. */
const causeIdsSql = `with keys as (
    select value as cause_key from json_each(?)
    union select a.merged_into from cause_aliases a where a.cause_key in (select value from json_each(?)))
  select g.id from groups g join keys k on g.cause_key = k.cause_key`

/** Replaces groups by all groups that are shown as them, and causes by their groups. */
export function resolveGroups<F extends CountedFilter>(database: Database, filter: F): F {
  if (filter.groupIds === undefined && filter.causes === undefined) return filter
  const { causes, groupIds, ...rest } = filter
  const members = groupIds === undefined ? undefined : listMembers(database, groupIds)
  if (causes === undefined) return { ...rest, groupIds: members } as unknown as F
  const keys = JSON.stringify(causes)
  const ofCauses = database.readArrays(causeIdsSql, keys, keys).map((row) => readNumber(row, 0))
  const known = new Set(members)
  const both = members === undefined ? ofCauses : ofCauses.filter((id) => known.has(id))
  return { ...rest, groupIds: both } as unknown as F
}

/** The groups that are shown as one of these, and these. Unknown ids are left out. */
export function listMembers(database: Database, groupIds: readonly number[]): number[] {
  return database.readArrays(memberIdsSql, JSON.stringify(groupIds)).map((row) => readNumber(row, 0))
}
