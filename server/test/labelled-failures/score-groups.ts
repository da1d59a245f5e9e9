/** How well predicted groups match the true causes. */
export type Scores = Readonly<{
  failures: number
  causes: number
  groups: number
  /** The share of failures whose group is exactly their cause. */
  accuracy: number
  /** The number of causes that are exactly one group. */
  exact: number
  /** Precision and recall are those of pairs of failures in one group. */
  f1: number
  /** Causes in several groups, and groups with several causes. */
  split: number
  merged: number
  /** Families of near misses (`base~variant`), and those with two variants in one group. */
  families: number
  confused: number
}>

export function scoreGroups(causes: readonly string[], groups: readonly (string | number)[]): Scores {
  const groupsOf = countPairs(causes, groups)
  const causesOf = countPairs(groups, causes)
  const exact = [...groupsOf.values()].filter((inside) => isExact(inside, causesOf))
  const together = sumPairs([...groupsOf.values()].flatMap((inside) => [...inside.values()]))
  const precision = divide(together, sumPairs([...causesOf.values()].map(sum)))
  const recall = divide(together, sumPairs([...groupsOf.values()].map(sum)))
  const families = Map.groupBy(
    [...groupsOf.keys()].filter((cause) => cause.includes('~')),
    (cause) => cause.slice(0, cause.indexOf('~')),
  )
  const confused = [...families.values()].filter((members) => hasSharedGroup(members, groupsOf))
  return {
    failures: causes.length,
    causes: groupsOf.size,
    groups: causesOf.size,
    accuracy: divide(
      exact.map(sum).reduce((a, b) => a + b, 0),
      causes.length,
    ),
    exact: exact.length,
    f1: precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall),
    split: [...groupsOf.values()].filter((inside) => inside.size > 1).length,
    merged: [...causesOf.values()].filter((inside) => inside.size > 1).length,
    families: families.size,
    confused: confused.length,
  }
}

function countPairs<A, B>(from: readonly A[], to: readonly B[]): Map<A, Map<B, number>> {
  const counts = new Map<A, Map<B, number>>()
  for (const [index, a] of from.entries()) {
    const inside = counts.get(a) ?? new Map<B, number>()
    const b = to[index] as B
    counts.set(a, inside.set(b, (inside.get(b) ?? 0) + 1))
  }
  return counts
}

function isExact<G>(
  inside: ReadonlyMap<G, number>,
  causesOf: ReadonlyMap<G, ReadonlyMap<string, number>>,
): boolean {
  const [group] = inside.keys()
  return inside.size === 1 && group !== undefined && causesOf.get(group)?.size === 1
}

function hasSharedGroup<G>(
  members: readonly string[],
  groupsOf: ReadonlyMap<string, ReadonlyMap<G, number>>,
): boolean {
  const seen = new Set<G>()
  for (const member of members) {
    for (const group of groupsOf.get(member)?.keys() ?? []) {
      if (seen.has(group)) return true
      seen.add(group)
    }
  }
  return false
}

function sum(counts: ReadonlyMap<unknown, number>): number {
  return [...counts.values()].reduce((a, b) => a + b, 0)
}

function sumPairs(counts: readonly number[]): number {
  return counts.reduce((pairs, n) => pairs + (n * (n - 1)) / 2, 0)
}

function divide(a: number, b: number): number {
  return b === 0 ? 1 : a / b
}
