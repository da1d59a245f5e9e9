/** Topics filled with records for the benchmark. */
import { Admin, Producer } from '@platformatic/kafka'

export type BenchRecord = Readonly<{ key: Buffer; value: Buffer; headers?: Map<Buffer, Buffer> }>

/** A batch must fit into the 1 MiB that brokers accept. */
const recordsPerSend = 500

export interface BenchTopics {
  create(name: string, partitions: number): Promise<string>
  /** Fills a topic evenly. */
  fill(topic: string, partitions: number, count: number, create: (n: number) => BenchRecord): Promise<void>
  admin: Admin
  close(): Promise<void>
}

export function createBenchTopics(brokers: readonly string[]): BenchTopics {
  const connection = { clientId: 'bench', bootstrapBrokers: [...brokers] }
  const admin = new Admin(connection)
  const producer = new Producer({ ...connection, acks: -1, idempotent: true })
  return {
    admin,
    create: async (name, partitions) => {
      await admin.createTopics({ topics: [name], partitions, replicas: 1 })
      return name
    },
    fill: async (topic, partitions, count, create) => {
      for (let sent = 0; sent < count; sent += recordsPerSend) {
        const size = Math.min(recordsPerSend, count - sent)
        const partition = (sent / recordsPerSend) % partitions
        const messages = Array.from({ length: size }, (_, n) => ({ topic, partition, ...create(sent + n) }))
        await producer.send({ messages })
      }
    },
    close: async () => {
      await Promise.allSettled([producer.close(), admin.close()])
    },
  }
}

/** The envelope of a dead record, about 1 KB. */
export function createDeadRecord(source: string, group: string, n: number): BenchRecord {
  const time = new Date(1_700_000_000_000 + n).toISOString()
  const envelope = {
    original_topic: source,
    original_partition: n % 12,
    original_offset: n,
    original_key: `deal_${n}`,
    original_value: { event_id: n, deal_id: `deal_${n}`, payload: { amount: 12_345, note: 'x'.repeat(200) } },
    error_details: {
      exception_class: `com.example.${['Timeout', 'Refused', 'BadData'][n % 3]}Exception`,
      message: `TON Center API timeout after ${n % 90}s`,
      stack_trace: Array.from(
        { length: 8 },
        (_, at) => `    at com.example.Worker.step${at}(Worker.java:${at})`,
      ).join('\n'),
    },
    retry_count: 5,
    worker_instance: 'payout-executor-1',
    first_failure_at: time,
    last_failure_at: time,
    consumer_group: group,
  }
  return { key: Buffer.from(`deal_${n}`), value: Buffer.from(JSON.stringify(envelope)) }
}
