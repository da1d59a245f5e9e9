/** Topics, producers and consumer groups on the real Kafka of the test run. */
import { randomUUID } from 'node:crypto'
import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { parseKafkaClusters } from '../../src/config/kafka-clusters.ts'
import type { Settings } from '../../src/config/settings/settings.ts'

export type SentRecord = Readonly<{
  topic: string
  timestampMs?: number
  partition?: number
  key?: Uint8Array | string | null
  value: Uint8Array | string | null
  headers?: readonly (readonly [name: string, value: Uint8Array | string | null])[]
}>

export interface TestKafka {
  readonly brokers: readonly string[]
  readonly admin: Admin
  /** A name that no other test uses. */
  name(base: string): string
  createTopic(name: string, partitions?: number, configs?: Readonly<Record<string, string>>): Promise<string>
  /** Returns the offset of each record. */
  send(records: readonly SentRecord[], compression?: Compression): Promise<readonly number[]>
  /** Sends records in a transaction that is committed or aborted. */
  sendInTransaction(records: readonly SentRecord[], isCommitted: boolean): Promise<void>
  /** Sends transactions of one producer, one after the other. */
  sendTransactions(transactions: readonly SentTransaction[]): Promise<void>
  /** Reads all records that a topic has now, by partition and offset. */
  read(topic: string): Promise<readonly ReadRecord[]>
  /** Commits offsets for a group, as if its consumers had processed the records before them. */
  commit(group: string, topic: string, offsets: readonly number[]): Promise<void>
  committed(group: string, topic: string): Promise<readonly number[]>
  close(): Promise<void>
}

export type Compression = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd'
export type SentTransaction = Readonly<{ records: readonly SentRecord[]; isCommitted: boolean }>

export type ReadRecord = Readonly<{
  partition: number
  offset: number
  key: Buffer | null
  value: Buffer | null
  headers: readonly (readonly [string, Buffer | null])[]
}>

const toBuffer = (value: Uint8Array | string | null | undefined): Buffer | undefined =>
  value === null || value === undefined ? undefined : Buffer.from(value)

function toMessage({ topic, partition = 0, key, value, headers = [], timestampMs }: SentRecord) {
  const [keyBytes, valueBytes] = [toBuffer(key), toBuffer(value)]
  return {
    topic,
    partition,
    ...(timestampMs !== undefined && { timestamp: BigInt(timestampMs) }),
    ...(keyBytes !== undefined && { key: keyBytes }),
    ...(valueBytes !== undefined && { value: valueBytes }),
    headers: new Map(
      headers.map(([name, held]) => [Buffer.from(name), (toBuffer(held) ?? null) as Buffer] as const),
    ),
  }
}

export function openTestKafka(brokers: readonly string[]): TestKafka {
  const connection = { clientId: 'redrive-test', bootstrapBrokers: [...brokers] }
  const admin = new Admin(connection)
  const producer = new Producer({ ...connection, acks: -1, idempotent: true })
  return {
    brokers,
    admin,
    name: (base) => `${base}-${randomUUID().slice(0, 8)}`,
    createTopic: async (name, partitions = 1, configs = {}) => {
      await admin.createTopics({
        topics: [name],
        partitions,
        replicas: 1,
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
      })
      return name
    },
    send: async (records, compression = 'none') => {
      const { offsets = [] } = await producer.send({ messages: records.map(toMessage), compression })
      const next = new Map(
        offsets.map(({ topic, partition, offset }) => [`${topic}/${partition}`, Number(offset)]),
      )
      return records.map(({ topic, partition = 0 }) => {
        const key = `${topic}/${partition}`
        const offset = next.get(key) ?? -1
        next.set(key, offset + 1)
        return offset
      })
    },
    sendInTransaction: (records, isCommitted) => sendTransactions(connection, [{ records, isCommitted }]),
    sendTransactions: (transactions) => sendTransactions(connection, transactions),
    read: (topic) => readAll(connection, topic),
    commit: (groupId, topic, offsets) =>
      admin.alterConsumerGroupOffsets({
        groupId,
        topics: [
          {
            name: topic,
            partitionOffsets: offsets.map((offset, partition) => ({ partition, offset: BigInt(offset) })),
          },
        ],
      }),
    committed: async (group, topic) => {
      const [found] = await admin.listConsumerGroupOffsets({ groups: [group] })
      const partitions = found?.topics.find(({ name }) => name === topic)?.partitions ?? []
      return partitions
        .toSorted((a, b) => a.partitionIndex - b.partitionIndex)
        .map(({ committedOffset }) => Number(committedOffset))
    },
    close: async () => {
      await Promise.allSettled([producer.close(), admin.close()])
    },
  }
}

async function sendTransactions(
  connection: Readonly<{ clientId: string; bootstrapBrokers: string[] }>,
  transactions: readonly SentTransaction[],
): Promise<void> {
  const producer = new Producer({
    ...connection,
    acks: -1,
    idempotent: true,
    transactionalId: `transaction-${randomUUID()}`,
  })
  try {
    for (const { records, isCommitted } of transactions) {
      const transaction = await producer.beginTransaction()
      for (const part of divide(records.map(toMessage))) await transaction.send({ messages: part })
      await (isCommitted ? transaction.commit() : transaction.abort())
    }
  } finally {
    await producer.close()
  }
}

/** A broker refuses batches of more than 1 MiB. */
const batchBytesMax = 900_000

function* divide(messages: readonly ReturnType<typeof toMessage>[]) {
  let part: ReturnType<typeof toMessage>[] = []
  let bytes = 0
  for (const message of messages) {
    const size = message.value?.byteLength ?? 0
    if (part.length > 0 && bytes + size > batchBytesMax) {
      yield part
      ;[part, bytes] = [[], 0]
    }
    part.push(message)
    bytes += size
  }
  yield part
}

async function readAll(
  connection: Readonly<{ clientId: string; bootstrapBrokers: string[] }>,
  topic: string,
): Promise<readonly ReadRecord[]> {
  const consumer = new Consumer({ ...connection, groupId: `read-${randomUUID()}` })
  try {
    consumer.topics.trackAll(topic)
    const ends = (await consumer.listOffsets({ topics: [topic] })).get(topic) ?? []
    const records: ReadRecord[] = []
    for (const [partition, end] of ends.entries()) {
      for (let from = 0n; from < end; ) {
        const read = await readSome(consumer, topic, partition, from)
        records.push(...read.records)
        from = read.next
      }
    }
    return records
  } finally {
    await consumer.close(true)
  }
}

async function readSome(
  consumer: Consumer,
  topic: string,
  partition: number,
  from: bigint,
): Promise<Readonly<{ records: readonly ReadRecord[]; next: bigint }>> {
  const found = (await consumer.metadata({ topics: [topic] })).topics.get(topic)
  const bytesMax = 8 * 2 ** 20
  const wanted = {
    partition,
    fetchOffset: from,
    currentLeaderEpoch: -1,
    lastFetchedEpoch: -1,
    partitionMaxBytes: bytesMax,
  }
  const { responses } = await consumer.fetch({
    node: found?.partitions[partition]?.leader ?? 0,
    maxWaitTime: 1_000,
    minBytes: 1,
    maxBytes: bytesMax,
    topics: [{ topicId: found?.id ?? '', partitions: [wanted] }],
  })
  const batches = responses[0]?.partitions[0]?.records ?? []
  const records = batches.flatMap(({ firstOffset, records: own }) =>
    own.map(({ offsetDelta, key, value, headers }) => ({
      partition,
      offset: Number(firstOffset) + offsetDelta,
      key,
      value,
      headers: headers.map(([name, held]) => [String(name), held] as const),
    })),
  )
  const last = batches.at(-1)
  const next = last === undefined ? from : last.firstOffset + BigInt(last.lastOffsetDelta) + 1n
  return { records: records.filter(({ offset }) => offset >= from), next }
}

/** The settings of a server that reads from this Kafka with short intervals. */
export function kafkaSettings(
  brokers: readonly string[],
  over: Readonly<Record<string, unknown>> = {},
): Partial<Settings> {
  const clusters = { test: { brokers: [...brokers], group: `redrive-${randomUUID()}`, ...over } }
  return {
    'kafka.clusters': parseKafkaClusters(JSON.stringify(clusters)),
    'kafka.discovery_interval': 200,
    'kafka.proof_interval': 100,
    'kafka.proof_grace': 300,
    'kafka.lag_interval': 200,
  }
}
