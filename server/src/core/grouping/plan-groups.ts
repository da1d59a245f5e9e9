/**
 * Decides about several causes without a group at once: which join stored groups, which get new groups, and
 * which groups change. Equal to deciding one after the other, so that a batch of letters gets the same groups
 * as single letters.
 */
import type { Cause } from '../dead-letters/cause.ts'
import { GroupIndex, type IndexedGroup } from './group-index.ts'

/** `key` names the cause in the plan. */
export type WantedCause = Readonly<{ key: string; cause: Cause }>
export type WiderGroup = Readonly<{ template: string; title: string }>
export type GroupsPlan = Readonly<{
  /** The stored group of a cause. */
  joined: ReadonlyMap<string, number>
  /** The causes that get a group. */
  created: readonly WantedCause[]
  /** The causes that get the group of another cause, which is among `created`. */
  shared: ReadonlyMap<string, string>
  /** Stored groups whose template and title change. */
  widened: ReadonlyMap<number, WiderGroup>
  /** Stored groups that another one covers: they become part of it. */
  merged: ReadonlyMap<number, number>
}>

/** Ids of groups that are not stored yet, above all ids of stored groups. */
const newIds = 2 ** 40

/** `candidates`: the stored groups of one queue with the origins and buckets of the causes, ordered by id. */
export function planGroups(wanted: readonly WantedCause[], candidates: readonly IndexedGroup[]): GroupsPlan {
  const index = new GroupIndex()
  for (const candidate of candidates) index.add(candidate)
  const created: WantedCause[] = []
  const ids = new Map<string, number>()
  const widened = new Map<number, WiderGroup>()
  const roots = new Map<number, number>()
  for (const { key, cause } of wanted) {
    const match = index.match(cause)
    if (match.kind === 'create') {
      const id = newIds + created.length
      created.push({ key, cause })
      index.add({ ...cause, id })
      ids.set(key, id)
      continue
    }
    ids.set(key, match.id)
    if (match.kind === 'use') continue
    widened.set(match.id, { template: match.template, title: match.title })
    for (const id of match.merged) roots.set(id, match.id)
    index.widen(cause, match)
  }
  return toPlan(created, ids, widened, roots)
}

function toPlan(
  created: readonly WantedCause[],
  ids: ReadonlyMap<string, number>,
  widened: ReadonlyMap<number, WiderGroup>,
  roots: ReadonlyMap<number, number>,
): GroupsPlan {
  const findRoot = (id: number): number => {
    const root = roots.get(id)
    return root === undefined ? id : findRoot(root)
  }
  const joined = new Map<string, number>()
  const shared = new Map<string, string>()
  for (const [key, id] of ids) {
    const root = findRoot(id)
    if (root < newIds) joined.set(key, root)
    else if (created[root - newIds]?.key !== key) shared.set(key, created[root - newIds]?.key ?? key)
  }
  const merged = [...roots.keys()].filter((id) => id < newIds).map((id) => [id, findRoot(id)] as const)
  return {
    joined,
    created: created
      .map((each, place) => ({ ...each, cause: { ...each.cause, ...widened.get(newIds + place) } }))
      .filter(({ key }) => !joined.has(key) && !shared.has(key)),
    shared,
    widened: new Map([...widened].filter(([id]) => id < newIds && !roots.has(id))),
    merged: new Map(merged),
  }
}
