/** Reads everything that the rules look at. The cost depends on the number of queues, not of letters. */
import type { Alert } from '../../core/alerts/alert.ts'
import {
  type AlertFacts,
  type ConsumerFact,
  type GroupFact,
  nameInflow,
  type QueueFact,
  type TopicFact,
} from '../../core/alerts/facts.ts'
import { selectCandidates } from '../../core/alerts/observe.ts'
import type { AlertRule } from '../../core/alerts/rule.ts'
import { readLifecycleAt } from '../../core/dead-letters/group-lifecycle.ts'
import type { Queue } from '../../core/items/queue.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { Finding } from '../../core/watching/findings.ts'
import type { GroupNotice } from '../../storage/contract/groups.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

export type FactParts = Readonly<{
  storage: () => StoreReads
  /** The problems of workers and consumer groups. `isCut`: only the worst are listed. */
  readFindings(): Promise<Readonly<{ findings: readonly Finding[]; isCut: boolean }>>
  /** Read without waiting. */
  listTopics(): readonly TopicFact[]
  /** Clusters whose lag and topics are not known now. */
  listUnknownClusters(): readonly string[]
  readConsumers(): Promise<readonly ConsumerFact[]>
  readCountDrift(): number
}>

export type ReadFacts = Readonly<{ facts: AlertFacts; notices: readonly GroupNotice[] }>

/** Further notices wait for the next pass. */
const noticesPerPass = 1_000
const queuesPerRead = 1_000
const countsAtOnce = 8
const unresolvedStates = ['waiting', 'scheduled', 'leased', 'dead'] as const

export async function readFacts(
  parts: FactParts,
  rules: readonly AlertRule[],
  tracked: readonly Alert[],
  now: Instant,
): Promise<ReadFacts> {
  const storage = parts.storage()
  const [known, notices, found, consumers] = await Promise.all([
    readQueues(storage),
    storage.listGroupNotices({ countMax: noticesPerPass }),
    parts.readFindings(),
    parts.readConsumers(),
  ])
  const { queues, byName } = known
  const enabled = rules.filter(({ isEnabled }) => isEnabled)
  const [oldest, inflow, groups] = await Promise.all([
    readOldest(storage, enabled, queues),
    readInflow(storage, enabled, queues, now),
    readGroups(storage, notices, tracked, byName, now),
  ])
  const facts: AlertFacts = {
    now,
    queues,
    oldest,
    inflow,
    groups,
    findings: found.findings,
    areFindingsCut: found.isCut,
    unknownClusters: parts.listUnknownClusters(),
    consumers,
    topics: parts.listTopics(),
    countDrift: parts.readCountDrift(),
  }
  return { facts, notices }
}

type KnownQueues = Readonly<{ queues: readonly QueueFact[]; byName: ReadonlyMap<string, Queue> }>

async function readQueues(storage: StoreReads): Promise<KnownQueues> {
  const counts = await storage.countLetters({ filter: { states: unresolvedStates }, by: ['queue'] })
  const unresolved = new Map(counts.map(({ queue = '', count }) => [queue, count]))
  const byName = new Map<string, Queue>()
  for (let from: string | undefined; ; ) {
    const page = await storage.listQueues({ ...(from !== undefined && { from }), countMax: queuesPerRead })
    for (const queue of page) byName.set(queue.name, queue)
    const last = page.at(-1)?.name
    if (last === undefined || page.length < queuesPerRead) break
    from = last
  }
  const queues = [...byName.values()].flatMap(({ name, namespace, letterClass }) => {
    const unresolvedCount = unresolved.get(name) ?? 0
    return unresolvedCount === 0 ? [] : [{ name, namespace, letterClass, unresolvedCount }]
  })
  return { queues, byName }
}

async function readOldest(
  storage: Pick<StoreReads, 'readOldestOpen'>,
  rules: readonly AlertRule[],
  queues: readonly QueueFact[],
): Promise<ReadonlyMap<string, Instant>> {
  const names = rules.flatMap(({ condition }) =>
    condition.type === 'oldest-letter' ? selectCandidates(condition, queues).map(({ name }) => name) : [],
  )
  if (names.length === 0) return new Map()
  const oldest = await storage.readOldestOpen([...new Set(names)])
  return new Map(oldest.map(({ queue, diedAt }) => [queue, diedAt]))
}

/** Only queues that have enough letters are looked at. */
async function readInflow(
  storage: StoreReads,
  rules: readonly AlertRule[],
  queues: readonly QueueFact[],
  now: Instant,
): Promise<ReadonlyMap<string, number>> {
  const wanted = new Map<string, Readonly<{ name: string; windowUs: number }>>()
  for (const { condition } of rules) {
    if (condition.type !== 'inflow') continue
    const { windowUs } = condition
    for (const { name } of selectCandidates(condition, queues))
      wanted.set(nameInflow(name, windowUs), { name, windowUs })
  }
  const counted = new Map<string, number>()
  const entries = [...wanted]
  for (let at = 0; at < entries.length; at += countsAtOnce) {
    const reads = entries.slice(at, at + countsAtOnce).map(async ([key, { name, windowUs }]) => {
      counted.set(key, await storage.countOpenSince(now - windowUs, [name]))
    })
    await Promise.all(reads)
  }
  return counted
}

/** Groups with a notice, and those about which there are alerts. */
async function readGroups(
  storage: StoreReads,
  notices: readonly GroupNotice[],
  tracked: readonly Alert[],
  queues: ReadonlyMap<string, Queue>,
  now: Instant,
): Promise<readonly GroupFact[]> {
  const noticed = new Map(notices.map((notice) => [notice.groupId, notice]))
  const ids = new Set([...noticed.keys(), ...tracked.flatMap(({ groupId }) => groupId ?? [])])
  if (ids.size === 0) return []
  const groupIds = [...ids]
  const groups = await storage.listGroups({
    filter: { groupIds },
    isEmptyToo: true,
    countMax: groupIds.length,
  })
  return groups.flatMap(({ id, queue, title, states, lifecycle }) => {
    const known = queues.get(queue)
    if (known === undefined) return []
    const { namespace, letterClass } = known
    const count = unresolvedStates.reduce((sum, state) => sum + (states[state] ?? 0), 0)
    const { state } = readLifecycleAt(lifecycle, now)
    return [{ id, queue, namespace, letterClass, title, count, state, notice: noticed.get(id) ?? null }]
  })
}
