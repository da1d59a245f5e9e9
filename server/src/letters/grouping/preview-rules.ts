/** Shows what rules would do to the newest letters of a dead queue, without changing anything. */
import { toCause } from '../../core/dead-letters/cause.ts'
import { planGroups } from '../../core/grouping/plan-groups.ts'
import { type CompiledRules, compileRules, type GroupingRule } from '../../core/grouping/rules.ts'
import type { LetterId, QueueName } from '../../core/ids/ids.ts'
import type { ListedLetter } from '../../storage/contract/letters.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { searchLetters } from '../../storage/search/search-letters.ts'

export type RulesPreview = Readonly<{
  /** Letters that were compared. */
  examined: number
  /** Letters whose title or group would be another one. */
  changed: number
  groupsBefore: number
  groupsAfter: number
  /** The largest groups with the rules. */
  groups: readonly Readonly<{ title: string; count: number }>[]
  /** Some letters whose title changes. */
  examples: readonly Readonly<{ letterId: LetterId; before: string; after: string }>[]
}>

const groupsShown = 20
const examplesShown = 20

export async function previewRules(
  storage: StoreReads,
  queue: QueueName,
  rules: readonly GroupingRule[],
  lettersMax: number,
): Promise<RulesPreview> {
  const present = compileRules((await storage.getQueue(queue))?.groupingRules)
  const wanted = compileRules(rules)
  const needsPayload = present?.readsPayload === true || wanted?.readsPayload === true
  const { found } = await searchLetters(storage, {
    filter: { queues: [queue] },
    order: 'deadLetteredAt',
    isDescending: true,
    countMax: lettersMax,
    bytes: needsPayload ? 'all' : 'none',
  })
  const letters = found.map(({ item }) => item)
  const before = groupLetters(letters, present)
  const after = groupLetters(letters, wanted)
  const titles = letters.map((letter, index) => ({
    letterId: letter.rootId,
    before: before.titles[index] ?? '',
    after: after.titles[index] ?? '',
  }))
  const changed = titles.filter((each) => each.before !== each.after)
  return {
    examined: letters.length,
    changed: changed.length,
    groupsBefore: before.counts.size,
    groupsAfter: after.counts.size,
    groups: [...after.counts.values()].sort((a, b) => b.count - a.count).slice(0, groupsShown),
    examples: changed.slice(0, examplesShown),
  }
}

type Grouped = Readonly<{
  titles: readonly string[]
  counts: ReadonlyMap<string, Readonly<{ title: string; count: number }>>
}>

/** As if these were the first letters of the queue, the oldest first. */
function groupLetters(letters: readonly ListedLetter[], rules: CompiledRules | undefined): Grouped {
  const causes = letters.map(({ failure, origin, payload }) =>
    toCause(failure, origin ?? { name: '' }, rules, payload),
  )
  const distinct = new Map(causes.toReversed().map((cause) => [cause.fingerprint, cause]))
  const plan = planGroups(
    [...distinct].filter(([, { bucket }]) => bucket !== '').map(([key, cause]) => ({ key, cause })),
    [],
  )
  const created = new Map(plan.created.map(({ key, cause }) => [key, cause.title]))
  const counts = new Map<string, { title: string; count: number }>()
  const titles = causes.map((cause) => {
    const key = plan.shared.get(cause.fingerprint) ?? cause.fingerprint
    const group = counts.get(key) ?? { title: created.get(key) ?? cause.title, count: 0 }
    group.count++
    counts.set(key, group)
    return group.title
  })
  return { titles, counts }
}
