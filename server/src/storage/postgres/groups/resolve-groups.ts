/** Finds the groups that a filter means: groups can be part of another one, and causes span groups. */
import { isStorableText } from '../../../core/text/storable-text.ts'
import type { CountedFilter } from '../../contract/letters.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { isInt4 } from '../counts/count-conditions.ts'

type Reader = Pick<Connection, 'query'>

const memberIds: Statement = {
  name: 'group-members',
  text: `with roots as materialized (
      select distinct coalesce(g.merged_into, g.id) as id from unnest($1::int4[]) as w(id)
        cross join lateral (select f.id, f.merged_into from redrive.groups f where f.id = w.id offset 0) g)
    select r.id from roots r
    union select g.id from roots r cross join lateral (
      select f.id from redrive.groups f where f.merged_into = r.id and f.merged_into is not null offset 0) g`,
}
/** The key of a cause may have been merged into another one. */
const causeIds: Statement = {
  name: 'groups-of-causes',
  text: `with keys as materialized (
      select w.cause_key from unnest($1::text[]) as w(cause_key)
      union select a.merged_into from redrive.cause_aliases a where a.cause_key = any ($1::text[]))
    select g.id from keys k cross join lateral (
      select f.id from redrive.groups f where f.cause_key = k.cause_key offset 0) g`,
}

/** Replaces groups by all groups that are shown as them, and causes by their groups. */
export async function resolveGroups<F extends CountedFilter>(reader: Reader, filter: F): Promise<F> {
  if (filter.groupIds === undefined && filter.causes === undefined) return filter
  const { causes, groupIds, ...rest } = filter
  const members = groupIds === undefined ? undefined : await listMembers(reader, groupIds)
  if (causes === undefined) return { ...rest, groupIds: members } as unknown as F
  const rows = await reader.query(causeIds, [encodeTexts(causes.filter(isStorableText))])
  const ofCauses = rows.map((row) => readNumber(row, 'id'))
  const known = new Set(members)
  const both = members === undefined ? ofCauses : ofCauses.filter((id) => known.has(id))
  return { ...rest, groupIds: both } as unknown as F
}

/** The groups that are shown as one of these, and these. Unknown ids are left out. */
export async function listMembers(reader: Reader, groupIds: readonly number[]): Promise<number[]> {
  const rows = await reader.query(memberIds, [encodeInt4s(groupIds.filter(isInt4))])
  return rows.map((row) => readNumber(row, 'id'))
}
