/**
 * Sends redriven letters to Kafka. It leases redriven items from the replay queues of a cluster like any
 * worker, sends them, and records where they are. Each item goes through these steps:
 *
 * 1. The item is leased. If the redrive of its letter has ended in the meantime, it is only removed.
 * 2. The record is sent and acknowledged by all replicas that are in sync.
 * 3. One transaction removes the item and stores the place of the record. The letter keeps waiting for the
 *    outcome, which `proof/` finds.
 *
 * Each step works on another batch at the same time: while one is sent, the one before is recorded, and the
 * next one is leased. Batches are sent one after the other.
 *
 * If the process is killed between 2 and 3, the lease ends and the item is sent again: the record is in Kafka
 * twice, with the same letter id and attempt in its headers. A record that cannot be sent returns to its
 * letter with the reason. While the cluster does not answer, the items wait in their queue.
 */
import { Producer } from '@platformatic/kafka'
import { isRedriving } from '../../../core/dead-letters/letter.ts'
import type { Leased, Origin } from '../../../core/items/item.ts'
import { nameReplayQueue, type ReplayMode, replayRequests } from '../../../core/kafka/replay-queues.ts'
import { readTraceHeaders } from '../../../core/trace/trace-headers.ts'
import { linksMax, type Tracing } from '../../../core/trace/tracing.ts'
import { KnownError } from '../../../errors.ts'
import type { RecordKafkaReplays } from '../../../storage/contract/kafka.ts'
import { pause } from '../bridge/bridge-session.ts'
import { hashContent } from '../bridge/find-returns.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'
import { describeKafkaError } from '../cluster/describe-error.ts'
import { type Cluster, type KafkaParts, kafkaActor } from '../parts.ts'
import { createRecord, type RecordToSend, type ReplayRefusal } from './create-record.ts'
import { type Sent, sendRecords } from './send-records.ts'
import { TopicTargets } from './topic-targets.ts'

const itemsMax = 1_000
const leaseWaitMs = 20_000
/** Longer than sending takes with all retries: an item that is leased again is sent again. */
const leaseTimeoutUs = 120_000_000
const neverUs = 100 * 365 * 24 * 3_600_000_000
const backoffMsMin = 100
const readersAgeMsMax = 5_000

export interface ReplaySender {
  start(): void
  stop(): Promise<void>
}

export function createReplaySender(
  cluster: Cluster,
  clients: ClusterClients,
  parts: KafkaParts,
): ReplaySender {
  const stopping = new AbortController()
  let running: Promise<unknown> | undefined
  return {
    start: () => {
      const requests = replayRequests.map((request) => {
        const mode = request === 'default' ? cluster.replay : request
        const queue = nameReplayQueue(cluster.name, request)
        return new QueueSender({ cluster, clients, parts, queue, mode, signal: stopping.signal }).run()
      })
      running ??= Promise.all(requests)
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}

type SenderOptions = Readonly<{
  cluster: Cluster
  clients: ClusterClients
  parts: KafkaParts
  queue: string
  mode: ReplayMode
  signal: AbortSignal
}>

type Sending = Readonly<{ item: Leased & { letterId: string }; record: RecordToSend }>
/** Leased items, and the records of those that are sent. */
type Batch = Readonly<{ partition: number; items: readonly Leased[]; sendings: readonly Sending[] }>

/** Sends the items of one queue, one batch after the other, so that they arrive in their order. */
class QueueSender {
  readonly #options: SenderOptions
  readonly #targets: TopicTargets
  #producer: Producer | undefined
  #isReady = false
  /** The last batch that was sent is being recorded. */
  #recording: Promise<void> = Promise.resolve()

  constructor(options: SenderOptions) {
    this.#options = options
    this.#targets = new TopicTargets(options.clients, options.cluster)
  }

  async run(): Promise<void> {
    const { signal, parts } = this.#options
    let waitMs = backoffMsMin
    while (!signal.aborted) {
      try {
        await this.#ensureQueue()
        await this.#sendAll(() => {
          waitMs = backoffMsMin
        })
      } catch (error) {
        if (signal.aborted || isWaiting(error)) continue
        // The queue may have been deleted.
        this.#isReady = false
        if (waitMs === backoffMsMin) this.#report(error)
        await this.#closeProducer()
        await pause(waitMs, signal)
        waitMs = Math.min(waitMs * 2, parts.intervals.backoffMsMax)
      }
    }
    await this.#closeProducer()
  }

  #report(error: unknown): void {
    const { parts, cluster, queue } = this.#options
    parts.log.warn(
      { cluster: cluster.name, queue, reason: describeKafkaError(error) },
      'redriven letters cannot be sent to Kafka; will retry',
    )
  }

  async #ensureQueue(): Promise<void> {
    if (this.#isReady) return
    const { parts, queue, cluster } = this.#options
    const engine = parts.engine()
    if ((await engine.getQueue(queue)) !== null) {
      this.#isReady = true
      return
    }
    const reason = `redrives to Kafka cluster ${cluster.name} wait in this queue`
    const definition = { name: queue, leaseTimeoutUs, expireTimeoutUs: neverUs }
    await engine
      .createQueue(definition, { actor: kafkaActor, reason, requestId: '' })
      .catch((error: unknown) => {
        if (!(error instanceof KnownError) || error.code !== 'QUEUE_EXISTS') throw error
      })
  }

  /** Sends batches until an error: also when no item arrives for a while. */
  async #sendAll(onSent: () => void): Promise<void> {
    const ending = new AbortController()
    const signal = AbortSignal.any([this.#options.signal, ending.signal])
    let next = this.#prepare(signal)
    try {
      while (!signal.aborted) {
        const batch = await next
        next = this.#prepare(signal)
        next.catch(() => {})
        await this.#deliver(batch)
        onSent()
      }
    } finally {
      ending.abort()
      const left = await next.catch(() => undefined)
      if (left !== undefined) await this.#putBack(left)
      await this.#recording.catch(() => {})
    }
  }

  async #prepare(signal: AbortSignal): Promise<Batch> {
    const { parts, queue } = this.#options
    const { partition, items } = await parts.engine().lease(queue, {
      clientId: `kafka ${parts.owner}`,
      countMax: itemsMax,
      timeoutMs: leaseWaitMs,
      signal,
    })
    try {
      const { sendings, refused, ended } = await this.#plan(items)
      await this.#refuse(partition, refused)
      await this.#dropEnded(partition, ended)
      await this.#announce(sendings)
      return { partition, items, sendings }
    } catch (error) {
      await this.#putBack({ partition, items })
      throw error
    }
  }

  async #deliver(batch: Batch): Promise<void> {
    const { parts } = this.#options
    const { partition, sendings } = batch
    try {
      const producer = await this.#getProducer()
      let startedAtMs = performance.now()
      for await (const { sent, failed } of sendRecords(producer, sendings)) {
        traceReplays(parts.tracing, sent, startedAtMs)
        await this.#recording
        this.#recording = this.#record(partition, sent)
        this.#recording.catch(() => {})
        await this.#refuse(partition, failed)
        await this.#forget(failed, sendings)
        startedAtMs = performance.now()
      }
    } catch (error) {
      await this.#recording.catch(() => {})
      await this.#putBack(batch)
      throw error
    }
  }

  /** The redrives of these items have ended, because a copy of the record that was sent before has died. */
  async #dropEnded(partition: number, ended: readonly Leased[]): Promise<void> {
    if (ended.length === 0) return
    const { parts, queue } = this.#options
    await parts.engine().complete(
      queue,
      partition,
      ended.map(({ id }) => id),
    )
    const replays = ended.flatMap(({ letterId, retryCount: number }) =>
      letterId === null ? [] : [{ letterId, number }],
    )
    await parts.engine().write([{ op: 'forget-kafka-replays', replays }])
  }

  /** A record can die before its place is recorded, and must be recognised even then. */
  async #announce(sendings: readonly Sending[]): Promise<void> {
    if (sendings.length === 0) return
    const { parts, cluster } = this.#options
    const replays = sendings.map((sending) => toReplay(sending, cluster))
    await parts.engine().write([{ op: 'announce-kafka-replays', replays, now: parts.clock.now() }])
  }

  /** These records were announced, and Kafka refused them. */
  async #forget(failed: readonly Readonly<{ id: string }>[], sendings: readonly Sending[]): Promise<void> {
    if (failed.length === 0) return
    const ids = new Set(failed.map(({ id }) => id))
    const replays = sendings.filter(({ item }) => ids.has(item.id)).map(toRedriveName)
    await this.#options.parts.engine().write([{ op: 'forget-kafka-replays', replays }])
  }

  /** Decides for each item where it is sent, or why it is not. */
  async #plan(items: readonly Leased[]) {
    const { parts, mode, cluster, clients } = this.#options
    const letterIds = [...new Set(items.flatMap(({ letterId }) => letterId ?? []))]
    const letters = new Map(
      (await parts.storage().getLetters(letterIds, 'head')).map((letter) => [letter.rootId, letter]),
    )
    const sendings: Sending[] = []
    const refused: { id: string; refusal: ReplayRefusal }[] = []
    const ended: Leased[] = []
    for (const item of items) {
      const { letterId } = item
      const letter = letterId === null ? undefined : letters.get(letterId)
      const isCurrent =
        letter !== undefined && isRedriving(letter) && letter.letter?.redrives[0]?.number === item.retryCount
      if (letterId === null || !isCurrent || letter.origin === null) {
        ended.push(item)
        continue
      }
      const readers = await this.#readersOf(letter.origin, mode, clients)
      const record = createRecord({ item, origin: letter.origin, mode, readers }, cluster)
      const target = 'code' in record ? record : await this.#targets.find(record, letter.origin)
      if ('code' in target) refused.push({ id: item.id, refusal: target })
      else sendings.push({ item: { ...item, letterId }, record: target })
    }
    return { sendings, refused, ended }
  }

  /** The other modes do not depend on the readers, unless the group that failed is unknown. */
  async #readersOf(origin: Origin, mode: ReplayMode, clients: ClusterClients): Promise<readonly string[]> {
    if (mode !== 'topic' && origin.group !== null) return []
    const { lagMs } = this.#options.parts.intervals
    return clients.groupOffsets.listReaders(origin.name, Math.min(readersAgeMsMax, lagMs))
  }

  async #record(
    partition: number,
    sent: readonly (Sending & { partition: number; offset: number })[],
  ): Promise<void> {
    if (sent.length === 0) return
    const { parts, queue, signal } = this.#options
    const command: RecordKafkaReplays = {
      op: 'record-kafka-replays',
      queue,
      partition,
      replays: sent.map(({ partition: sentTo, offset, item: { id, letterId, retryCount } }) => ({
        itemId: id,
        letterId,
        number: retryCount,
        partition: sentTo,
        offset,
      })),
      now: parts.clock.now(),
    }
    // The records are in Kafka: as long as the store does not know it, a restart would send them again.
    for (let waitMs = backoffMsMin; ; waitMs = Math.min(waitMs * 2, parts.intervals.backoffMsMax)) {
      try {
        await parts.engine().write([{ ...command, now: parts.clock.now() }])
        return
      } catch (error) {
        if (signal.aborted) throw error
        await pause(waitMs, signal)
      }
    }
  }

  async #refuse(
    partition: number,
    refused: readonly Readonly<{ id: string; refusal: ReplayRefusal }>[],
  ): Promise<void> {
    if (refused.length === 0) return
    const { parts, queue } = this.#options
    await parts.engine().retry(
      queue,
      partition,
      refused.map(({ id, refusal: { code, message } }) => ({
        id,
        isDead: true,
        error: { errorCode: code, errorClass: 'KafkaRedriveRefused', message },
      })),
    )
  }

  /** The attempt does not count: the item was not sent. Items that were already settled are skipped. */
  async #putBack({ partition, items }: Pick<Batch, 'partition' | 'items'>): Promise<void> {
    const { parts, queue } = this.#options
    const ids = items.map(({ id }) => id)
    await parts
      .engine()
      .write([{ op: 'unlease', queue, partition, ids, now: parts.clock.now() }])
      .catch(() => {})
  }

  async #getProducer(): Promise<Producer> {
    this.#producer ??= new Producer({
      ...(await this.#options.clients.options()),
      acks: -1,
      idempotent: true,
    })
    return this.#producer
  }

  async #closeProducer(): Promise<void> {
    const producer = this.#producer
    this.#producer = undefined
    await producer?.close(true).catch(() => {})
  }
}

/** A span per topic. The records keep the traces that their letters came with. */
function traceReplays(
  tracing: Tracing | undefined,
  sent: readonly Sent<Sending>[],
  startedAtMs: number,
): void {
  if (tracing === undefined) return
  for (const [destination, own] of Map.groupBy(sent, ({ record }) => record.topic)) {
    const links = own.slice(0, linksMax).map(({ record }) => readTraceHeaders(record.headers))
    const ids = own.map(({ item }) => item.letterId)
    tracing.start({ operation: 'replay', destination, links, startedAtMs }).end({ ids })
  }
}

function toRedriveName({ item: { letterId, retryCount: number } }: Sending) {
  return { letterId, number }
}

function toReplay({ item, record }: Sending, cluster: Cluster) {
  return {
    letterId: item.letterId,
    number: item.retryCount,
    cluster: cluster.name,
    topic: record.topic,
    group: record.group ?? '',
    contentHash: hashContent(record.key, record.value ?? new Uint8Array()),
  }
}

function isWaiting(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'LEASE_TIMEOUT'
}
