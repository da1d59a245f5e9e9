/** The Kafka worker with a handler that does nothing, beside the bare loop of the client. */
import { randomUUID } from 'node:crypto'
import { createKafkaWorker } from '../../client/src/kafka/index.ts'
import type { KafkaBench } from '../kafka.ts'
import type { Measured } from '../report.ts'
import { readWithBareClient } from './bare.ts'
import { alternate, compare, type Part, toMeasured } from './ratios.ts'

const partitions = 6
const recordsDefault = 600_000
const recordsQuick = 120_000
const operation = 'records of 200 bytes, no-op handler'

export async function measureWorker(bench: KafkaBench): Promise<Part> {
  const count = bench.isQuick ? recordsQuick : recordsDefault
  const topic = await bench.topics.create(`worker-${randomUUID().slice(0, 8)}`, partitions)
  const value = Buffer.from('x'.repeat(200))
  await bench.topics.fill(topic, partitions, count, (n) => ({ key: Buffer.from(`key ${n % 1_000}`), value }))
  const worker = async (): Promise<Measured> => {
    const perSecond = await workAll(bench.brokers, topic, count, () => {})
    return toMeasured('worker', operation, 1, perSecond)
  }
  const asynchronous = async (): Promise<Measured> => {
    const perSecond = await workAll(bench.brokers, topic, count, async () => {})
    return toMeasured('worker, async handler', operation, 1, perSecond)
  }
  const bare = async (): Promise<Measured> =>
    toMeasured('bare consumer loop', operation, 1, await readWithBareClient(bench.brokers, topic, count))
  const [own, own2, other] = (await alternate(bench.rounds, [worker, asynchronous, bare])) as [
    Measured,
    Measured,
    Measured,
  ]
  return { measured: [own, own2, other], ratios: [compare(own, other, 0.7), compare(own2, other, 0.7)] }
}

/** From the first record to the last. */
async function workAll(
  brokers: readonly string[],
  topic: string,
  count: number,
  handler: () => unknown,
): Promise<number> {
  let [seen, startedAt, endedAt] = [0, 0, 0]
  const done = Promise.withResolvers<void>()
  const worker = createKafkaWorker({
    brokers,
    topics: topic,
    group: `worker-${randomUUID()}`,
    sideTopics: false,
    handler: () => {
      if (seen === 0) startedAt = performance.now()
      if (++seen === count) {
        endedAt = performance.now()
        done.resolve()
      }
      return handler()
    },
  })
  await done.promise
  await worker.stop()
  return count / ((endedAt - startedAt) / 1_000)
}
