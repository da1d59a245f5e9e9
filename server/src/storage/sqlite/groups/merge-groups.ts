/**
 * Merges groups and causes. A merged group keeps its letters and counts; every read adds them to the group
 * that it is shown as. So a merge takes effect for all letters in one transaction, whatever their number.
 */
import { areAlike, candidatesMax, type GroupTemplate } from '../../../core/grouping/match-group.ts'
import { planMerges } from '../../../core/grouping/plan-merges.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'

type AlikeGroup = Readonly<{ id: number; template: string; causeKey: string }>

const alikeSql = `select id, template, cause_key from groups
  where bucket = ? and bucket <> '' order by id limit ${candidatesMax}`

/** The groups of all queues that may have the same cause, the oldest first. */
export function listAlike(database: Database, bucket: string): AlikeGroup[] {
  return database.readArrays(alikeSql, bucket).map((row) => ({
    id: readNumber(row, 0),
    template: readText(row, 1),
    causeKey: readText(row, 2),
  }))
}

/** The key into which this key was merged, or the key itself. */
export function findAliasedKey(database: Database, causeKey: string): string {
  const row = database.getArray('select merged_into from cause_aliases where cause_key = ?', causeKey)
  return row === undefined ? causeKey : readText(row, 0)
}

/** A group got a wider template: groups of other queues that it describes now have the same cause. */
export function mergeAlikeCauses(database: Database, bucket: string, { id, template }: GroupTemplate): void {
  const groups = listAlike(database, bucket).filter((group) => areAlike(group.template, template))
  const oldest = groups[0]?.id ?? id
  runMerges(
    database,
    groups.map((group) => [group.id, oldest]),
    'causes',
  )
}

/** The groups are described by the template of `into`: they become part of it, and take no other causes. */
export function coverGroups(database: Database, groupIds: readonly number[], into: number): void {
  mergeGroups(
    database,
    groupIds.map((id) => [id, into]),
  )
  for (const id of groupIds) database.run(`update groups set bucket = '' where id = ?`, id)
}

export function mergeGroups(database: Database, pairs: readonly (readonly [number, number])[]): void {
  runMerges(database, pairs, 'groups and causes')
}

const readSql = `select id, coalesce(merged_into, id), cause_key from groups
  where id in (select value from json_each(?))`
/** A title that a person chose is kept, unless the other group has one too. */
const keepTitleSql = `update groups set pinned_title = coalesce(pinned_title,
  (select pinned_title from groups where id = ?)) where id = ?`

function runMerges(
  database: Database,
  pairs: readonly (readonly [number, number])[],
  subject: 'causes' | 'groups and causes',
): void {
  if (pairs.length === 0) return
  const known = database.readArrays(readSql, JSON.stringify(pairs.flat())).map((row) => ({
    id: readNumber(row, 0),
    shownAs: readNumber(row, 1),
    causeKey: readText(row, 2),
  }))
  const { groups, causes } = planMerges(pairs, known)
  for (const [from, to] of causes) mergeCause(database, from, to)
  if (subject === 'causes') return
  for (const [from, to] of groups) {
    database.run('update groups set merged_into = ? where id = ? or merged_into = ?', to, from, from)
    database.run(keepTitleSql, from, to)
  }
}

export function mergeCause(database: Database, from: string, to: string): void {
  database.run('update groups set cause_key = ? where cause_key = ?', to, from)
  database.run('update cause_aliases set merged_into = ? where merged_into = ?', to, from)
  database.run('insert or replace into cause_aliases (cause_key, merged_into) values (?, ?)', from, to)
  // The key may have been merged before, and been given to a new group since.
  database.run('delete from cause_aliases where cause_key = ?', to)
}
