/**
 * The membership of a worker in its consumer group, from joining until an error or the end.
 *
 * Before the worker joins again in a rebalance, all partitions pause: handlers that are running may finish,
 * and their offsets are committed, so that the next owner starts behind them. After it, partitions that
 * stayed continue, partitions that went are given up, and new ones start at their committed offset.
 */
import {
  Admin,
  Consumer,
  FetchIsolationLevels,
  ListOffsetTimestamps,
  offsetFetchV8,
} from '@platformatic/kafka'
import type { WorkerSettings } from '../options.ts'
import { noAttempts } from '../partitions/attempts.ts'
import { ParkedQueue } from '../partitions/parked-records.ts'
import type { PartitionParts, WorkerCounts, WorkerEvents } from '../partitions/partition-parts.ts'
import { PartitionWorker } from '../partitions/partition-worker.ts'
import { readMetadata } from '../partitions/progress-metadata.ts'
import { createDeferred, groupByTopic, pause, pauseUnless, resolvesWithin } from '../timing.ts'
import { DeadLetterSender } from './dead-letter-sender.ts'
import { decodeAnswer, type FetchResponse } from './decode-fetch.ts'
import { hasKafkaError } from './kafka-errors.ts'
import { type Membership, OffsetCommitter } from './offset-committer.ts'
import { WorkerTopics } from './topics.ts'

export type SessionParts = Readonly<{
  settings: WorkerSettings
  events: WorkerEvents
  counts: WorkerCounts
  runId: string
  nowMs(): number
  onProcessed(): void
  /** The group has assigned partitions. */
  onJoined(): void
}>

const heartbeatsPerSession = 5
const fetchWaitMs = 500
/** A partition that had no room is fetched again soon, although the others have no records. */
const shortFetchWaitMs = 50
const fetchBytesMax = 8 * 2 ** 20
const partitionBytesMax = 2 * 2 ** 20
const idleMs = 20
const fetchRetryMs = 250
const abortedHandlersMsMax = 1_000
/** Enough for commits and for leaving the group, if Kafka answers. */
const goodbyeMsMax = 5_000

type ConnectionOptions = ConstructorParameters<typeof Admin>[0]
type Assigned = Readonly<{ topic: string; partition: number }>
type Started = Readonly<{ offset: number; metadata: string | null }>

export class WorkerSession {
  readonly #parts: SessionParts
  readonly #connection: ConnectionOptions
  readonly #admin: Admin
  readonly #consumer: Consumer
  readonly #committer: OffsetCommitter
  readonly #topics: WorkerTopics
  readonly #deadLetters: DeadLetterSender
  readonly #partitions = new Map<string, PartitionWorker>()
  /** Partitions that were given up while a handler was running. */
  readonly #leaving = new Set<Promise<void>>()
  readonly #loops = new Map<number, Promise<void>>()
  readonly #failure = createDeferred<never>()
  readonly #stopping = new AbortController()
  /** When the session started. */
  #partitionCounts: ReadonlyMap<string, number> = new Map()
  #membership: Membership | null = null
  #claiming: Promise<void> = Promise.resolve()

  constructor(parts: SessionParts) {
    this.#parts = parts
    const { settings, events } = parts
    this.#connection = {
      ...settings.connection,
      clientId: settings.connection.clientId ?? settings.instanceId,
      bootstrapBrokers: [...settings.brokers],
      retries: 2,
      retryDelay: 250,
      autocreateTopics: false,
    }
    this.#failure.promise.catch(() => {})
    this.#admin = new Admin(this.#connection)
    this.#consumer = this.#createConsumer()
    this.#topics = new WorkerTopics(this.#admin, this.#consumer, settings)
    this.#deadLetters = new DeadLetterSender({
      settings,
      connection: this.#connection,
      topics: this.#topics,
      admin: this.#admin,
    })
    this.#committer = new OffsetCommitter({
      admin: this.#admin,
      group: settings.group,
      coordinatorId: () => this.#consumer.findGroupCoordinator(),
      membership: () => this.#membership,
      onError: (error) => events.onError(error, { during: 'commit' }),
    })
  }

  get partitions(): readonly PartitionWorker[] {
    return [...this.#partitions.values()]
  }

  /** Runs until the signal aborts, or rejects with the first error. `close` has to follow. */
  async run(signal: AbortSignal): Promise<void> {
    const { events } = this.#parts
    const aborted = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const joining = (async () => {
      const topics = await this.#topics.listSubscribed((error, topic) =>
        events.onError(error, { during: 'topics', topic }),
      )
      this.#consumer.topics.trackAll(...topics)
      this.#consumer.clearMetadata()
      this.#consumer.on('consumer:group:join', () => this.#onJoin())
      this.#consumer.on('consumer:heartbeat:stalled', ({ lastError }) =>
        this.#fail(lastError ?? new Error('the consumer group got no heartbeat in time')),
      )
      this.#consumer.on('error' as never, this.#fail as never)
      this.#partitionCounts = await this.#topics.countPartitions(topics)
      if (!signal.aborted) await this.#consumer.joinGroup({})
      await this.#watchTopics(topics)
    })()
    await Promise.race([joining, aborted, this.#failure.promise])
  }

  /** Joins the group again when a topic has got more partitions. */
  async #watchTopics(topics: readonly string[]): Promise<void> {
    const { settings, events } = this.#parts
    let counts = this.#partitionCounts
    for (;;) {
      await pauseUnless(settings.topicCheckMs, this.#stopping.signal)
      if (this.#stopping.signal.aborted) return
      try {
        const found = await this.#topics.countPartitions(topics)
        if (topics.every((topic) => found.get(topic) === counts.get(topic))) continue
        await this.#consumer.joinGroup({})
        counts = found
      } catch (error) {
        if (!this.#stopping.signal.aborted) events.onError(error, { during: 'topics' })
      }
    }
  }

  /** Lets handlers finish within the grace, commits, and leaves the group. */
  async close(graceMs: number): Promise<void> {
    const reason = new Error('the worker stops, and the handler did not finish in time')
    await Promise.all(this.partitions.map((each) => each.pause(graceMs)))
    for (const each of this.partitions) each.abort(reason)
    const ended = Promise.all([...this.partitions.map((each) => each.ended()), ...this.#leaving])
    const isEnded = await resolvesWithin(ended, abortedHandlersMsMax)
    if (isEnded) await Promise.all(this.partitions.map((each) => each.pause(abortedHandlersMsMax)))
    this.#stopping.abort()
    await resolvesWithin(this.#committer.flush(), goodbyeMsMax)
    for (const each of this.partitions) each.lose()
    this.#partitions.clear()
    await resolvesWithin(this.#leaveGroup(), goodbyeMsMax)
    await this.#deadLetters.close()
    await resolvesWithin(
      Promise.allSettled([this.#consumer.close(true), this.#admin.close(), ...this.#loops.values()]),
      goodbyeMsMax,
    )
  }

  /** Resolves when no handler of the session is running. */
  async ended(): Promise<void> {
    await Promise.all([...this.#leaving])
  }

  #createConsumer(): Consumer {
    const { group, sessionTimeoutMs } = this.#parts.settings
    return new Consumer({
      ...this.#connection,
      groupId: group,
      sessionTimeout: sessionTimeoutMs,
      rebalanceTimeout: sessionTimeoutMs,
      heartbeatInterval: Math.max(Math.floor(sessionTimeoutMs / heartbeatsPerSession), 100),
      heartbeatStallTimeout: sessionTimeoutMs,
      autocommit: false,
      // Called before each join, also of a rebalance.
      protocolsMetadata: async () => {
        await this.#pauseAll()
        return Buffer.alloc(0)
      },
    })
  }

  async #pauseAll(): Promise<void> {
    const { rebalanceGraceMs } = this.#parts.settings
    await this.#claiming.catch(() => {})
    await Promise.all(this.partitions.map((each) => each.pause(rebalanceGraceMs)))
  }

  readonly #fail = (error: unknown): void => {
    if (!this.#stopping.signal.aborted) this.#failure.reject(error)
  }

  #onJoin(): void {
    const { memberId, generationId } = this.#consumer
    this.#membership = memberId === null ? null : { memberId, generationId }
    this.#claiming = this.#claimAssigned().catch(this.#fail)
  }

  async #claimAssigned(): Promise<void> {
    const assigned = (this.#consumer.assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map((partition) => ({ topic, partition })),
    )
    const wanted = new Set(assigned.map(keyOf))
    for (const [key, each] of this.#partitions) if (!wanted.has(key)) this.#giveUp(key, each)
    for (const each of this.#partitions.values()) each.resume()
    const added = assigned.filter((each) => !this.#partitions.has(keyOf(each)))
    // A handler of an earlier assignment of the same partition must have ended.
    await Promise.all([...this.#leaving])
    if (added.length > 0) await this.#start(added)
    this.#parts.onJoined()
    this.#startLoops()
  }

  #giveUp(key: string, worker: PartitionWorker): void {
    this.#partitions.delete(key)
    worker.lose()
    const leaving = worker.ended().finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
  }

  async #start(added: readonly Assigned[]): Promise<void> {
    const { settings } = this.#parts
    const topics = [...new Set(added.map(({ topic }) => topic))]
    const metadata = await this.#consumer.metadata({ topics, forceUpdate: true })
    const [committed, ranges] = await Promise.all([this.#readCommitted(added), this.#readRanges(added)])
    const generation = this.#membership?.generationId
    for (const each of added) {
      const { earliest, latest } = ranges(each)
      const started = committed.get(keyOf(each))
      // The records of a partition that was added later are all new.
      const isAdded = each.partition >= (this.#partitionCounts.get(each.topic) ?? 0)
      const first = settings.startFrom === 'latest' && !isAdded ? latest : earliest
      const from = started?.offset ?? first
      const fetchFrom = this.#checkRange(each, from, earliest, latest)
      const worker = new PartitionWorker(this.#createParts(each, started, from), fetchFrom, BigInt(latest))
      worker.leader = metadata.topics.get(each.topic)?.partitions[each.partition]?.leader ?? -1
      // Another rebalance may have started in the meantime: it pauses the partitions that it finds.
      if (this.#stopping.signal.aborted || this.#membership?.generationId !== generation) worker.lose()
      else this.#partitions.set(keyOf(each), worker)
    }
  }

  #createParts({ topic, partition }: Assigned, started: Started | undefined, from: number): PartitionParts {
    const { settings, events, counts, runId, nowMs, onProcessed } = this.#parts
    const { redrive, group } = settings
    const known = readMetadata(started?.metadata ?? null)
    const start = known ?? { isRunning: false, hasParked: false, attempts: noAttempts }
    return {
      claim: { topic, partition, isCurrent: true },
      start: { ...start, offset: from, isKnown: known !== null },
      settings,
      events,
      counts,
      nowMs,
      onProcessed,
      committer: this.#committer,
      deadLetters: this.#deadLetters,
      parkedQueue:
        redrive === null ? null : new ParkedQueue({ client: redrive.client, runId, topic, partition, group }),
    }
  }

  #checkRange({ topic, partition }: Assigned, from: number, earliest: number, latest: number): number {
    if (from >= earliest && from <= latest) return from
    const problem =
      from < earliest
        ? `Kafka removed ${earliest - from} records of ${topic}, partition ${partition}, before they were processed`
        : `${topic}, partition ${partition}, ends at ${latest}, before the committed offset ${from}`
    this.#parts.events.onError(new Error(problem), { during: 'offsets', topic, partition })
    return from < earliest ? earliest : latest
  }

  async #readCommitted(added: readonly Assigned[]): Promise<ReadonlyMap<string, Started>> {
    const { group } = this.#parts.settings
    const coordinatorId = await this.#consumer.findGroupCoordinator()
    const connection = (await this.#admin.connectToBrokers([coordinatorId])).get(coordinatorId)
    if (connection === undefined) throw new Error(`there is no connection to broker ${coordinatorId}`)
    const topics = [...groupByTopic(added, ({ topic }) => topic)].map(([name, own]) => ({
      name,
      partitionIndexes: own.map(({ partition }) => partition),
    }))
    const { groups } = await offsetFetchV8.api.async(
      connection,
      [{ groupId: group, memberEpoch: -1, topics }],
      true,
    )
    const found = new Map<string, Started>()
    for (const { topics: answered } of groups)
      for (const { name: topic, partitions } of answered)
        for (const { partitionIndex: partition, committedOffset, metadata } of partitions)
          if (committedOffset >= 0n)
            found.set(keyOf({ topic, partition }), {
              offset: Number(committedOffset),
              metadata: metadata ?? null,
            })
    return found
  }

  async #readRanges(
    added: readonly Assigned[],
  ): Promise<(place: Assigned) => Readonly<{ earliest: number; latest: number }>> {
    const byTopic = groupByTopic(added, ({ topic }) => topic)
    const topics = [...byTopic.keys()]
    const partitions = Object.fromEntries(
      [...byTopic].map(([topic, own]) => [topic, own.map(({ partition }) => partition)]),
    )
    const [earliest, latest] = await Promise.all([
      this.#consumer.listOffsets({ topics, partitions, timestamp: ListOffsetTimestamps.EARLIEST }),
      this.#consumer.listOffsets({ topics, partitions, timestamp: ListOffsetTimestamps.LATEST }),
    ])
    return ({ topic, partition }) => ({
      earliest: Number(earliest.get(topic)?.[partition] ?? 0n),
      latest: Number(latest.get(topic)?.[partition] ?? 0n),
    })
  }

  /** One loop for each node that leads partitions of this worker, so that a slow node delays no other. */
  #startLoops(): void {
    for (const node of new Set(this.partitions.map(({ leader }) => leader))) {
      if (this.#loops.has(node)) continue
      const loop = this.#readNode(node)
        .catch(this.#fail)
        .finally(() => this.#loops.delete(node))
      this.#loops.set(node, loop)
    }
  }

  async #readNode(node: number): Promise<void> {
    const { settings, events } = this.#parts
    let failedSinceMs = 0
    while (!this.#stopping.signal.aborted) {
      const own = this.partitions.filter(({ leader }) => leader === node)
      if (own.length === 0) return
      const wanted = own.filter(({ hasRoom }) => hasRoom)
      try {
        if (wanted.length === 0) await pause(idleMs)
        else await this.#fetch(node, wanted, wanted.length < own.length)
        failedSinceMs = 0
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        failedSinceMs ||= performance.now()
        const isLasting = performance.now() - failedSinceMs > settings.sessionTimeoutMs
        if (isLasting || hasKafkaError(error, ...lastingErrors)) throw error
        events.onError(error, { during: 'fetch' })
        await pause(fetchRetryMs)
        await this.#findLeaders().catch(() => {})
      }
    }
  }

  async #findLeaders(): Promise<void> {
    const topics = [...new Set(this.partitions.map(({ claim }) => claim.topic))]
    if (topics.length === 0) return
    const metadata = await this.#consumer.metadata({ topics, forceUpdate: true })
    for (const each of this.partitions) {
      const found = metadata.topics.get(each.claim.topic)?.partitions[each.claim.partition]?.leader ?? -1
      if (found >= 0) each.leader = found
    }
    this.#startLoops()
  }

  async #fetch(node: number, wanted: readonly PartitionWorker[], isShort: boolean): Promise<void> {
    const topicNames = [...new Set(wanted.map(({ claim }) => claim.topic))]
    const metadata = await this.#consumer.metadata({ topics: topicNames })
    const byKey = new Map<string, PartitionWorker>()
    const topics = wanted.map((each) => {
      const topicId = metadata.topics.get(each.claim.topic)?.id ?? ''
      byKey.set(`${topicId}/${each.claim.partition}`, each)
      return { topicId, partitions: [toRequest(each)] }
    })
    const startedAtMs = performance.now()
    const response = await this.#consumer.fetch({
      node,
      topics,
      maxWaitTime: isShort ? shortFetchWaitMs : fetchWaitMs,
      minBytes: 1,
      maxBytes: fetchBytesMax,
      isolationLevel: FetchIsolationLevels.READ_COMMITTED,
    })
    const isEmpty = !this.#distribute(response, byKey)
    // A broker that answers at once without records must not keep this worker busy.
    if (isEmpty && performance.now() - startedAtMs < idleMs) await pause(idleMs)
  }

  #distribute(response: FetchResponse, byKey: ReadonlyMap<string, PartitionWorker>): boolean {
    let hasRecords = false
    for (const { topicId, partitions } of response.responses)
      for (const answer of partitions) {
        const worker = byKey.get(`${topicId}/${answer.partitionIndex}`)
        if (worker === undefined || answer.errorCode !== 0) continue
        worker.endOffset = answer.highWatermark
        const chunk = decodeAnswer(worker.claim, answer, worker.fetchFrom)
        if (chunk === undefined) continue
        hasRecords = true
        worker.add(chunk)
      }
    return hasRecords
  }

  /** The client reads metadata of its topics first, which fails if one of them was deleted. */
  async #leaveGroup(): Promise<void> {
    this.#consumer.topics.clear()
    this.#consumer.clearMetadata()
    // The types of the client choose the overload with a callback.
    const leave = this.#consumer.leaveGroup.bind(this.#consumer) as (isForced: boolean) => Promise<void>
    await leave(true).catch(() => {})
  }
}

const lastingErrors = ['OFFSET_OUT_OF_RANGE', 'UNKNOWN_TOPIC_ID', 'UNKNOWN_TOPIC_OR_PARTITION']

function toRequest({ claim, fetchFrom }: PartitionWorker) {
  return {
    partition: claim.partition,
    fetchOffset: fetchFrom,
    currentLeaderEpoch: -1,
    lastFetchedEpoch: -1,
    partitionMaxBytes: partitionBytesMax,
  }
}

function keyOf({ topic, partition }: Assigned): string {
  return `${topic}/${partition}`
}
