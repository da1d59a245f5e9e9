/** Decides how groups are shown after merges. Both stores execute the plan. */

/** `shownAs`: the group that it is part of, or its own id. */
export type MergedGroup = Readonly<{ id: number; shownAs: number; causeKey: string }>

export type MergePlan = Readonly<{
  /** Groups that are shown as another one from now on, with all groups that were shown as them. */
  groups: ReadonlyMap<number, number>
  /** Keys of causes that become another one. */
  causes: ReadonlyMap<string, string>
}>

/**
 * Merges each group of `pairs` into the second one. A group that is part of another one takes that one along.
 * Groups that are shown as one have one cause. Unknown groups are left out.
 */
export function planMerges(
  pairs: Iterable<readonly [id: number, into: number]>,
  known: readonly MergedGroup[],
): MergePlan {
  const byId = new Map(known.map((group) => [group.id, group]))
  const groups = new Map<number, number>()
  const causes = new Map<string, string>()
  for (const [id, into] of pairs) {
    const [from, to] = [byId.get(id), byId.get(into)]
    if (from === undefined || to === undefined) continue
    link(groups, from.shownAs, to.shownAs)
    link(causes, from.causeKey, to.causeKey)
  }
  return { groups: flatten(groups), causes: flatten(causes) }
}

function link<T>(targets: Map<T, T>, from: T, to: T): void {
  const [source, target] = [follow(targets, from), follow(targets, to)]
  if (source !== target) targets.set(source, target)
}

function follow<T>(targets: ReadonlyMap<T, T>, from: T): T {
  const next = targets.get(from)
  return next === undefined ? from : follow(targets, next)
}

function flatten<T>(targets: ReadonlyMap<T, T>): Map<T, T> {
  return new Map([...targets.keys()].map((from) => [from, follow(targets, from)]))
}
