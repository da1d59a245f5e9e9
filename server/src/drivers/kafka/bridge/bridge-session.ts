/**
 * Reads the dead-letter topics of a cluster, from joining the consumer group until an error or the end. The
 * group only divides the partitions among the servers. The positions in the store decide what was read:
 *
 * - A server claims each partition that the group assigns to it. A claim has an epoch, and replaces the claim
 *   of the server that had the partition before. Writes with an older claim are rejected.
 * - Reading starts at the position in the store, whatever offset is committed in Kafka.
 * - After a write, the position is committed to Kafka, so that tools show the lag.
 */
import { Admin, Consumer, FetchIsolationLevels, ListOffsetTimestamps } from '@platformatic/kafka'
import { KnownError } from '../../../errors.ts'
import type { KafkaPosition } from '../../../storage/contract/kafka.ts'
import { type ConnectionOptions, readConnectionOptions } from '../cluster/connection-options.ts'
import type { Cluster, KafkaParts } from '../parts.ts'
import { type ClaimedPartition, decideStart, partitionKey } from './claimed-partition.ts'
import { deadQueuePartitions, ensureDeadQueue, listDeadTopics, nameDeadQueue } from './dead-topics.ts'
import { decodeFetch, type FetchedRecords, type FetchResponse } from './decode-fetch.ts'
import { ingest } from './ingest.ts'
import { OffsetCommitter } from './offset-committer.ts'
import { sliceFetched } from './slice-fetched.ts'
import { divideIntoLanes } from './store-lanes.ts'

/** Heartbeats per session timeout, as Kafka recommends at least. */
const heartbeatsPerSession = 5
const fetchWaitMs = 500
const fetchBytesMax = 8 * 2 ** 20
/** Less than an answer has, so that an answer has records of several partitions. */
const partitionBytesMax = 2 ** 20
const idleMs = 100
/** A lost partition is claimed again after this time, if the group still assigns it to this server. */
const reclaimMs = 1_000
const storeRetryMsMax = 5_000

export type BridgeEvents = Readonly<{
  /** The group has assigned partitions. */
  onUp(): void
  onIngested(topic: string, records: number): void
  /** Kafka removed records before they were read, or lost them. */
  onLost(partition: ClaimedPartition, problem: 'removed' | 'truncated', count: number): void
  onStoreFailed(error: unknown): void
}>

export class BridgeSession {
  readonly #settings: Cluster
  readonly #parts: KafkaParts
  readonly #events: BridgeEvents
  readonly #failure = Promise.withResolvers<never>()
  readonly #stopping = new AbortController()
  readonly #claimed = new Map<string, ClaimedPartition>()
  readonly #loops = new Map<number, Promise<void>>()
  #topics: readonly string[] = []
  /** The number of partitions of each topic at the last discovery. */
  #partitionCounts: ReadonlyMap<string, number> = new Map()
  #claiming: Promise<void> = Promise.resolve()

  constructor(settings: Cluster, parts: KafkaParts, events: BridgeEvents) {
    this.#settings = settings
    this.#parts = parts
    this.#events = events
    this.#failure.promise.catch(() => {})
  }

  /** Runs until the signal aborts. Rejects with the first error; then nothing of the session is left. */
  async run(signal: AbortSignal): Promise<void> {
    const options = await readConnectionOptions(this.#settings)
    const admin = new Admin(options)
    const consumer = createConsumer(options, this.#settings)
    const committer = new OffsetCommitter(consumer)
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    try {
      const working = this.#work(admin, consumer, committer)
      await Promise.race([working, aborted, this.#failure.promise])
    } finally {
      this.#stopping.abort()
      await Promise.allSettled([...this.#loops.values(), this.#claiming])
      await committer.close()
      for (const each of this.#claimed.values()) each.isCurrent = false
      await leaveGroup(consumer)
      await Promise.allSettled([consumer.close(true), admin.close()])
    }
  }

  /** The partitions that this server reads. */
  list(): readonly ClaimedPartition[] {
    return [...this.#claimed.values()]
  }

  get topics(): readonly string[] {
    return this.#topics
  }

  async #work(admin: Admin, consumer: Consumer, committer: OffsetCommitter): Promise<void> {
    consumer.on('consumer:group:join', () => {
      this.#claiming = this.#claiming.then(() => this.#claimAssigned(consumer, committer)).catch(this.#fail)
    })
    consumer.on('error' as never, this.#fail as never)
    while (!this.#stopping.signal.aborted) {
      await this.#discover(admin, consumer)
      await pause(this.#parts.intervals.discoveryMs, this.#stopping.signal)
    }
  }

  readonly #fail = (error: unknown): void => {
    if (!this.#stopping.signal.aborted) this.#failure.reject(error)
  }

  /**
   * Joins the group again if the topics have changed, or a topic has got more partitions. Without topics
   * there is nothing to join for.
   */
  async #discover(admin: Admin, consumer: Consumer): Promise<void> {
    const found = await listDeadTopics(admin, this.#settings)
    const engine = this.#parts.engine()
    const added = found.filter((topic) => !this.#topics.includes(topic))
    for (const topic of added) {
      const isNew = await ensureDeadQueue(engine, this.#settings, topic)
      const queue = nameDeadQueue(this.#settings, topic)
      this.#parts.log.info(
        { cluster: this.#settings.name, topic, queue },
        isNew ? 'found a dead-letter topic and created its dead queue' : 'reading a dead-letter topic',
      )
    }
    const gone = this.#topics.filter((topic) => !found.includes(topic))
    const counts = await countPartitions(consumer, found)
    const hasGrown = found.some((topic) => counts.get(topic) !== this.#partitionCounts.get(topic))
    this.#topics = found
    this.#partitionCounts = counts
    if (added.length === 0 && gone.length === 0 && !hasGrown) {
      this.#events.onUp()
      return
    }
    consumer.topics.untrackAll(...gone)
    consumer.topics.trackAll(...added)
    consumer.clearMetadata()
    if (found.length > 0) await consumer.joinGroup({})
    this.#events.onUp()
  }

  /** Claims the partitions that were assigned and gives up the others. */
  async #claimAssigned(consumer: Consumer, committer: OffsetCommitter): Promise<void> {
    const assigned = (consumer.assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map((partition) => ({ topic, partition })),
    )
    const wanted = new Set(assigned.map(partitionKey))
    for (const [key, claimed] of this.#claimed) if (!wanted.has(key)) this.#giveUp(claimed)
    const added = assigned.filter((each) => !this.#claimed.has(partitionKey(each)))
    if (added.length > 0) await this.#claim(consumer, added)
    this.#startLoops(consumer, committer)
  }

  async #claim(
    consumer: Consumer,
    added: readonly Readonly<{ topic: string; partition: number }>[],
  ): Promise<void> {
    const topics = [...new Set(added.map(({ topic }) => topic))]
    const metadata = await consumer.metadata({ topics, forceUpdate: true })
    const { name: cluster, group } = this.#settings
    const partitions = added.map((each) => {
      const topicId = metadata.topics.get(each.topic)?.id
      // Another id would mean that the topic was created again, and read from its start.
      if (topicId === undefined) throw new Error(`topic ${each.topic} was deleted while it was claimed`)
      return { ...each, topicId }
    })
    const { engine, clock, owner } = this.#parts
    const [positions] = await engine().write([
      { op: 'claim-kafka-partitions', cluster, group, owner, partitions, now: clock.now() },
    ] as const)
    const ranges = await readRanges(consumer, added)
    for (const position of positions) {
      const leader = metadata.topics.get(position.topic)?.partitions[position.partition]?.leader ?? -1
      this.#start(position, leader, ranges, await this.#choosePartition(position))
    }
  }

  /**
   * The partition of the dead queue. Neighbouring partitions of the topic have different ones, and so have
   * those that the group gives to one of two servers.
   */
  async #choosePartition({ topic, partition }: Pick<KafkaPosition, 'topic' | 'partition'>): Promise<number> {
    const queue = await this.#parts.engine().getQueue(nameDeadQueue(this.#settings, topic))
    const count = queue?.partitions ?? deadQueuePartitions
    return (partition + Math.floor(partition / count)) % count
  }

  #start(position: KafkaPosition, leader: number, ranges: OffsetRanges, queuePartition: number): void {
    const { topic, partition, topicId, incarnation, epoch, nextOffset } = position
    const { earliest, latest } = ranges(topic, partition)
    const start = decideStart(position, earliest, latest)
    const claimed: ClaimedPartition = {
      topic,
      partition,
      topicId,
      incarnation,
      epoch,
      leader,
      queue: nameDeadQueue(this.#settings, topic),
      queuePartition,
      stored: nextOffset,
      fetchFrom: start.fetchFrom,
      endOffset: latest,
      isCurrent: true,
    }
    this.#claimed.set(partitionKey(claimed), claimed)
    if (start.problem !== null) this.#events.onLost(claimed, start.problem, start.lostCount)
  }

  #giveUp(claimed: ClaimedPartition): void {
    claimed.isCurrent = false
    if (this.#claimed.get(partitionKey(claimed)) === claimed) this.#claimed.delete(partitionKey(claimed))
  }

  /** One loop for each node that leads partitions of this server, so that a slow node delays no other. */
  #startLoops(consumer: Consumer, committer: OffsetCommitter): void {
    for (const node of new Set(this.list().map(({ leader }) => leader))) {
      if (this.#loops.has(node)) continue
      const loop = this.#readNode(node, consumer, committer)
        .catch(this.#fail)
        .finally(() => this.#loops.delete(node))
      this.#loops.set(node, loop)
    }
  }

  /** Fetches the next records while the previous ones are stored. Ends when the node leads no partition. */
  async #readNode(node: number, consumer: Consumer, committer: OffsetCommitter): Promise<void> {
    let next = this.#fetch(node, consumer)
    while (!this.#stopping.signal.aborted) {
      const fetched = await next
      if (fetched === undefined) return
      for (const { claimed, until } of fetched) claimed.fetchFrom = BigInt(until)
      next = this.#fetch(node, consumer)
      next.catch(() => {})
      await Promise.all(
        divideIntoLanes(fetched).map(async (lane) => {
          for (const slices of sliceFetched(lane)) await this.#store(slices, consumer, committer)
        }),
      )
    }
    await next.catch(() => {})
  }

  /** Undefined: the node leads no partition of this server any more. */
  async #fetch(node: number, consumer: Consumer): Promise<readonly FetchedRecords[] | undefined> {
    const wanted = this.list().filter(({ leader }) => leader === node)
    if (wanted.length === 0 || this.#stopping.signal.aborted) return undefined
    const topics = wanted.map(({ topicId, partition, fetchFrom }) => ({
      topicId,
      partitions: [
        {
          partition,
          fetchOffset: fetchFrom,
          currentLeaderEpoch: -1,
          lastFetchedEpoch: -1,
          partitionMaxBytes: partitionBytesMax,
        },
      ],
    }))
    const startedAt = performance.now()
    const response = await this.#fetchFrom(node, topics, consumer)
    const byKey = new Map(wanted.map((each) => [`${each.topicId}/${each.partition}`, each]))
    const fetched = decodeFetch(this.#settings.name, response, (topicId, partition) => {
      const claimed = byKey.get(`${topicId}/${partition}`)
      return claimed?.isCurrent === true ? claimed : undefined
    })
    // A broker that answers at once without records must not keep this server busy.
    const isBusy = fetched.length > 0 || performance.now() - startedAt > idleMs
    if (!isBusy) await pause(idleMs, this.#stopping.signal)
    return fetched
  }

  async #fetchFrom(
    node: number,
    topics: Parameters<Consumer['fetch']>[0]['topics'],
    consumer: Consumer,
  ): Promise<FetchResponse> {
    return consumer.fetch({
      node,
      topics,
      maxWaitTime: fetchWaitMs,
      minBytes: 1,
      maxBytes: fetchBytesMax,
      isolationLevel: FetchIsolationLevels.READ_COMMITTED,
    })
  }

  /** Stores the slices, waiting as long as the store does not answer. */
  async #store(
    given: readonly FetchedRecords[],
    consumer: Consumer,
    committer: OffsetCommitter,
  ): Promise<void> {
    const { name: cluster, group } = this.#settings
    const { engine, storage, clock, tracing } = this.#parts
    const parts = { cluster, group, engine, storage, clock, ...(tracing !== undefined && { tracing }) }
    for (
      let waitMs = idleMs;
      !this.#stopping.signal.aborted;
      waitMs = Math.min(waitMs * 2, storeRetryMsMax)
    ) {
      const slices = given.filter(({ claimed }) => claimed.isCurrent)
      if (slices.length === 0) return
      try {
        await ingest(parts, slices)
        for (const { claimed, until, records } of slices) {
          claimed.stored = until
          committer.add(claimed, until)
          this.#events.onIngested(claimed.topic, records.length)
        }
        return
      } catch (error) {
        if (error instanceof KnownError && error.code === 'KAFKA_PARTITION_LOST') {
          this.#lose(slices, consumer, committer)
          return
        }
        this.#events.onStoreFailed(error)
        await this.#recreateQueues(error, slices)
        await pause(waitMs, this.#stopping.signal)
      }
    }
  }

  /**
   * A dead queue that was deleted is created again: its topic still has records. If a person has created it
   * again, it can have fewer partitions.
   */
  async #recreateQueues(error: unknown, slices: readonly FetchedRecords[]): Promise<void> {
    const isGone =
      error instanceof KnownError &&
      (error.code === 'QUEUE_NOT_FOUND' || error.code === 'PARTITION_NOT_FOUND')
    if (!isGone) return
    try {
      for (const { claimed } of slices) {
        await ensureDeadQueue(this.#parts.engine(), this.#settings, claimed.topic)
        claimed.queuePartition = await this.#choosePartition(claimed)
      }
    } catch {
      // The next attempt to store the records reports it.
    }
  }

  /**
   * Another server has claimed at least one of the partitions. They are claimed again only if the group still
   * assigns them to this server after a while, in which a heartbeat tells about a rebalance.
   */
  #lose(slices: readonly FetchedRecords[], consumer: Consumer, committer: OffsetCommitter): void {
    for (const { claimed } of slices) this.#giveUp(claimed)
    this.#claiming = this.#claiming
      .then(() => pause(reclaimMs, this.#stopping.signal))
      .then(async () => {
        if (!this.#stopping.signal.aborted) await this.#claimAssigned(consumer, committer)
      })
      .catch(this.#fail)
  }
}

function createConsumer(options: ConnectionOptions, { group, sessionTimeoutMs }: Cluster): Consumer {
  return new Consumer({
    ...options,
    groupId: group,
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: Math.floor(sessionTimeoutMs / heartbeatsPerSession),
    rebalanceTimeout: sessionTimeoutMs,
    autocommit: false,
  })
}

/**
 * A member that does not leave keeps its partitions until its session ends. The client reads metadata of its
 * topics first, which fails if one of them was deleted.
 */
async function leaveGroup(consumer: Consumer): Promise<void> {
  consumer.topics.clear()
  consumer.clearMetadata()
  // The types of the client choose the overload with a callback.
  const leave = consumer.leaveGroup.bind(consumer) as (isForced: boolean) => Promise<void>
  await leave(true).catch(() => {})
}

async function countPartitions(
  consumer: Consumer,
  topics: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (topics.length === 0) return new Map()
  const metadata = await consumer.metadata({ topics: [...topics], forceUpdate: true })
  return new Map(topics.map((topic) => [topic, metadata.topics.get(topic)?.partitionsCount ?? 0]))
}

type OffsetRanges = (topic: string, partition: number) => Readonly<{ earliest: bigint; latest: bigint }>

async function readRanges(
  consumer: Consumer,
  added: readonly Readonly<{ topic: string; partition: number }>[],
): Promise<OffsetRanges> {
  const byTopic = Map.groupBy(added, ({ topic }) => topic)
  const topics = [...byTopic.keys()]
  const partitions = Object.fromEntries(
    [...byTopic].map(([topic, own]) => [topic, own.map(({ partition }) => partition)]),
  )
  const [earliest, latest] = await Promise.all([
    consumer.listOffsets({ topics, partitions, timestamp: ListOffsetTimestamps.EARLIEST }),
    consumer.listOffsets({ topics, partitions, timestamp: ListOffsetTimestamps.LATEST }),
  ])
  return (topic, partition) => ({
    earliest: earliest.get(topic)?.[partition] ?? 0n,
    latest: latest.get(topic)?.[partition] ?? 0n,
  })
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
