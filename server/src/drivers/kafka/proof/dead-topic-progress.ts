/**
 * How far in time the dead-letter topics of a cluster have been read, by all servers together. Offsets have
 * no time, so the ends of all topics are noted together with the time; once all positions have reached these
 * ends, everything that was written until that time has been read.
 */
import { ListOffsetTimestamps } from '@platformatic/kafka'
import type { Instant } from '../../../core/time/instant.ts'
import type { KafkaPosition } from '../../../storage/contract/kafka.ts'
import { listDeadTopics } from '../bridge/dead-topics.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'
import type { Cluster } from '../parts.ts'

type Ends = Readonly<{ at: Instant; ends: readonly PartitionEnd[] }>
type PartitionEnd = Readonly<{ topic: string; partition: number; earliest: number; end: number }>

export class DeadTopicProgress {
  readonly #cluster: Cluster
  readonly #clients: ClusterClients
  #noted: Ends | undefined
  #readUntil: Instant = Number.MIN_SAFE_INTEGER

  constructor(cluster: Cluster, clients: ClusterClients) {
    this.#cluster = cluster
    this.#clients = clients
  }

  /** `positions`: of the bridge, as the store has them now. */
  async update(positions: readonly KafkaPosition[], now: Instant): Promise<Instant> {
    if (this.#noted !== undefined && areReached(this.#noted.ends, positions)) {
      this.#readUntil = Math.max(this.#readUntil, this.#noted.at)
      this.#noted = undefined
    }
    this.#noted ??= { at: now, ends: await this.#readEnds() }
    return this.#readUntil
  }

  async #readEnds(): Promise<readonly PartitionEnd[]> {
    const topics = [...(await listDeadTopics(await this.#clients.admin(), this.#cluster))]
    if (topics.length === 0) return []
    const reader = await this.#clients.reader()
    reader.clearMetadata()
    const [earliest, latest] = await Promise.all([
      reader.listOffsets({ topics, timestamp: ListOffsetTimestamps.EARLIEST }),
      reader.listOffsets({ topics, timestamp: ListOffsetTimestamps.LATEST }),
    ])
    return [...latest].flatMap(([topic, ends]) =>
      ends.map((end, partition) => ({
        topic,
        partition,
        end: Number(end),
        earliest: Number(earliest.get(topic)?.[partition] ?? 0n),
      })),
    )
  }
}

function areReached(ends: readonly PartitionEnd[], positions: readonly KafkaPosition[]): boolean {
  const next = new Map(positions.map((each) => [`${each.topic}/${each.partition}`, each.nextOffset]))
  return ends.every(({ topic, partition, earliest, end }) => {
    const position = next.get(`${topic}/${partition}`)
    return end <= earliest || (position !== undefined && position !== null && position >= end)
  })
}
