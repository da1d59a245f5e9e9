/**
 * Finds the outcome of records that were sent to Kafka. All facts are in the store or in Kafka, so any server
 * can continue after a restart. One server of a store does it at a time, which saves requests; it would do no
 * harm if several did.
 */

import { createUnknownProof, decideProof, type ProofDecision } from '../../../core/kafka/proof.ts'
import { type Instant, usPerMs } from '../../../core/time/instant.ts'
import type { KafkaReplay, UnpassedPartition } from '../../../storage/contract/kafka.ts'
import type { EndRedrives } from '../../../storage/contract/letters.ts'
import type { HeldLock } from '../../../storage/contract/locks.ts'
import type { Command } from '../../../storage/contract/storage.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'
import type { Cluster, KafkaParts } from '../parts.ts'
import { DeadTopicProgress } from './dead-topic-progress.ts'
import { TopicIdentities } from './topic-identities.ts'

/** The limits of a pass. A pass that reaches one continues with the next. */
const partitionsMax = 1_000
const passedMax = 5_000
const examinedMax = 1_000
const lockUs = 15_000 * usPerMs

export interface Proof {
  /** Resolves with true if more is left to do now. */
  pass(): Promise<boolean>
  /** Lets another server continue now. */
  release(): Promise<void>
}

export function createProof(cluster: Cluster, clients: ClusterClients, parts: KafkaParts): Proof {
  const { engine, storage, clock, owner, intervals } = parts
  const progress = new DeadTopicProgress(cluster, clients)
  const identities = new TopicIdentities(clients)
  const graceUs = intervals.proofGraceMs * usPerMs
  const timeoutUs = intervals.proofTimeoutMs * usPerMs

  const hasReplays = async (): Promise<boolean> => {
    const query = { cluster: cluster.name, by: 'sent', until: Number.MAX_SAFE_INTEGER, countMax: 1 } as const
    return (await storage().listKafkaReplays(query)).length > 0
  }
  let held: HeldLock | null = null
  const acquire = async (now: Instant): Promise<boolean> => {
    const name = `kafka/${cluster.name}/proof`
    ;[held] = await engine().write([
      { op: 'acquire-lock', name, owner, now, deadline: now + lockUs },
    ] as const)
    return held !== null
  }
  const release = async (): Promise<void> => {
    if (held === null) return
    await engine()
      .write([{ op: 'release-lock', lock: held }])
      .catch(() => {})
    held = null
  }
  const pass = async (): Promise<boolean> => {
    if (!(await hasReplays()) || !(await acquire(clock.now()))) return false
    const unpassed = await storage().listUnpassedPartitions({
      cluster: cluster.name,
      countMax: partitionsMax,
    })
    const topics = [...new Set(unpassed.map(({ topic }) => topic))]
    const replaced = await identities.update(topics, clock.now())
    if (replaced.size > 0) await endReplaced(parts, cluster, replaced)
    const committed = await readCommitted(clients, unpassed)
    const isMoreToPass = await markPassed(parts, cluster, unpassed, committed)
    const positions = await storage().listKafkaPositions({ cluster: cluster.name, group: cluster.group })
    const readUntil = await progress.update(positions, clock.now())
    const decide = (replay: KafkaReplay): ProofDecision =>
      decideProof(replay, {
        now: clock.now(),
        graceUs,
        timeoutUs,
        readUntil,
        isGroupGone: committed.isGone(replay),
      })
    const endedPassed = await endDecided(parts, cluster, 'passed', clock.now() - graceUs, decide)
    // Records that were not passed are examined only if some of them can end.
    const waitUs = committed.hasGone ? graceUs : timeoutUs
    const endedSent = await endDecided(parts, cluster, 'sent', clock.now() - waitUs, decide)
    return isMoreToPass || endedPassed || endedSent
  }
  return { pass, release }
}

type Committed = Readonly<{
  get(partition: UnpassedPartition): number | null
  hasGone: boolean
  /** Whether the group of a record does not exist, and so has no offset of its partition. */
  isGone(partition: UnpassedPartition): boolean
}>

async function readCommitted(
  clients: ClusterClients,
  unpassed: readonly UnpassedPartition[],
): Promise<Committed> {
  const named = unpassed.filter(({ group }) => group !== '')
  const offsets = named.length > 0 ? await readOffsets(clients, named) : new Map<string, number>()
  // A group that exists may commit its first offset of a partition later.
  const states = named.length > 0 ? await clients.groupOffsets.listStates() : new Map<string, string>()
  const isGone = (each: UnpassedPartition): boolean =>
    each.group === '' || (!offsets.has(keyOf(each)) && !isAlive(states.get(each.group)))
  return { get: (each) => offsets.get(keyOf(each)) ?? null, hasGone: unpassed.some(isGone), isGone }
}

async function readOffsets(
  clients: ClusterClients,
  partitions: readonly UnpassedPartition[],
): Promise<Map<string, number>> {
  const groups = [...Map.groupBy(partitions, ({ group }) => group)].map(([groupId, own]) => ({
    groupId,
    topics: [...Map.groupBy(own, ({ topic }) => topic)].map(([name, each]) => ({
      name,
      partitionIndexes: each.map(({ partition }) => partition),
    })),
  }))
  const admin = await clients.admin()
  const answered = await admin.listConsumerGroupOffsets({ groups })
  const found = answered.flatMap(({ groupId, topics }) =>
    topics.flatMap(({ name, partitions: own }) =>
      own.map(({ partitionIndex, committedOffset }) => {
        const key = keyOf({ group: groupId, topic: name, partition: partitionIndex })
        return [key, Number(committedOffset)] as const
      }),
    ),
  )
  return new Map(found.filter(([, offset]) => offset >= 0))
}

function isAlive(state: string | undefined): boolean {
  return state !== undefined && state.toLowerCase() !== 'dead'
}

function keyOf({ group, topic, partition }: UnpassedPartition): string {
  return `${group}\n${topic}\n${partition}`
}

async function markPassed(
  { engine, clock }: KafkaParts,
  cluster: Cluster,
  unpassed: readonly UnpassedPartition[],
  committed: Committed,
): Promise<boolean> {
  const commands = unpassed.flatMap((each) => {
    const offset = committed.get(each)
    if (offset === null || offset === 0) return []
    const place = { cluster: cluster.name, ...each, committed: offset }
    return [{ op: 'pass-kafka-replays', ...place, countMax: passedMax, now: clock.now() } as const]
  })
  if (commands.length === 0) return false
  const results = await engine().write(commands)
  return results.some(({ passed }) => passed === passedMax)
}

/** Ends redrives whose outcome is decided. Resolves with true if some ended and more may follow. */
async function endDecided(
  { engine, storage, clock }: KafkaParts,
  cluster: Cluster,
  by: 'passed' | 'sent',
  until: Instant,
  decide: (replay: KafkaReplay) => ProofDecision,
): Promise<boolean> {
  const replays = await storage().listKafkaReplays({
    cluster: cluster.name,
    by,
    until,
    countMax: examinedMax,
  })
  const decided = replays.flatMap((replay) => {
    const decision = decide(replay)
    return decision.outcome === 'wait' ? [] : [{ replay, decision }]
  })
  if (decided.length === 0) return false
  await writeEnds(engine(), decided, clock.now())
  return replays.length === examinedMax
}

type Decided = Readonly<{ replay: KafkaReplay; decision: Exclude<ProofDecision, { outcome: 'wait' }> }>

async function writeEnds(
  engine: ReturnType<KafkaParts['engine']>,
  decided: readonly Decided[],
  now: Instant,
): Promise<void> {
  const ends: EndRedrives['ends'] = decided.map(({ replay, decision }) => ({
    letterId: replay.letterId,
    number: replay.number,
    outcome: decision.outcome,
    failure: decision.outcome === 'unknown' ? createUnknownProof(replay, replay, decision.reason, now) : null,
    target: nameTarget(replay),
  }))
  const commands: Command[] = [
    { op: 'end-redrives', ends, now },
    { op: 'forget-kafka-replays', replays: decided.map(({ replay }) => replay) },
  ]
  await engine.write(commands)
}

/** Ends the redrives of records that were sent to topics which were deleted or created again since. */
async function endReplaced(
  { engine, storage, clock }: KafkaParts,
  cluster: Cluster,
  replaced: ReadonlyMap<string, Instant>,
): Promise<void> {
  const query = { cluster: cluster.name, by: 'sent', until: clock.now(), countMax: examinedMax } as const
  for (let last: KafkaReplay | undefined; ; ) {
    const after = last && { at: last.sentAt, letterId: last.letterId }
    const replays = await storage().listKafkaReplays({ ...query, ...(after !== undefined && { after }) })
    const gone = replays.filter(
      ({ topic, offset, passedAt, sentAt }) =>
        offset >= 0 && passedAt === null && sentAt <= (replaced.get(topic) ?? Number.MIN_SAFE_INTEGER),
    )
    const decided = gone.map((replay) => {
      const reason = `topic ${replay.topic} was deleted or created again since`
      return { replay, decision: { outcome: 'unknown', reason } as const }
    })
    if (decided.length > 0) await writeEnds(engine(), decided, clock.now())
    last = replays.at(-1)
    if (replays.length < examinedMax) return
  }
}

/** Where the letter was sent, as its redrive shows it from now on. */
function nameTarget({ topic, partition, offset }: KafkaReplay) {
  return { kind: 'kafka', name: topic, partition, id: String(offset) } as const
}
