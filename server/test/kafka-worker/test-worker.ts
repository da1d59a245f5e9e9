/** Workers of the client on the real Kafka of the test run. */
import {
  createKafkaWorker,
  type KafkaWorker,
  type KafkaWorkerOptions,
} from '../../../client/src/kafka/index.ts'
import { pollUntil } from '../http/poll-until.ts'
import type { ReadRecord, TestKafka } from '../kafka/test-kafka.ts'

export type WorkerTest = Readonly<{
  /** Starts a worker that ends with the test file. Errors that it reports are collected. */
  start(
    options: Omit<KafkaWorkerOptions, 'brokers'> & Partial<Pick<KafkaWorkerOptions, 'brokers'>>,
  ): KafkaWorker & Readonly<{ errors: unknown[] }>
  stopAll(): Promise<void>
}>

export function createWorkerTest(brokers: readonly string[]): WorkerTest {
  const workers: KafkaWorker[] = []
  return {
    start: (options) => {
      const errors: unknown[] = []
      const worker = createKafkaWorker({
        brokers,
        sessionTimeout: '6s',
        rebalanceGrace: '2s',
        onError: (error) => void errors.push(error),
        ...options,
      })
      workers.push(worker)
      return { ...worker, errors }
    },
    stopAll: async () => {
      await Promise.all(workers.map((worker) => worker.stop({ withinMs: 500 })))
    },
  }
}

/** Reads a topic until it has at least `count` records. */
export function readUntil(kafka: TestKafka, topic: string, count: number): Promise<readonly ReadRecord[]> {
  return pollUntil(
    () => kafka.read(topic).catch(() => []),
    (records) => records.length >= count,
    30_000,
  )
}

export function waitUntil(isDone: () => boolean | Promise<boolean>, msMax = 30_000): Promise<boolean> {
  return pollUntil(
    async () => isDone(),
    (done) => done,
    msMax,
  )
}

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect
export function parseEnvelope(record: ReadRecord | undefined): any {
  return JSON.parse(String(record?.value))
}
