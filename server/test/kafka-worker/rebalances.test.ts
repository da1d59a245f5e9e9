import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { openTestKafka, type TestKafka } from '../kafka/test-kafka.ts'
import { createWorkerTest, type WorkerTest, waitUntil } from './test-worker.ts'

const kafka = await requireService('kafka')
const broker = await requireService('privateKafka')

describe('Kafka workers of one group', needs(kafka), () => {
  let test: TestKafka
  let workers: WorkerTest
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
    workers = createWorkerTest(kafka.brokers)
  })
  afterEach(() => workers.stopAll())
  afterAll(() => test.close())

  it('rebalances in the middle of a batch skip no record, and keep the order of each partition', {
    timeout: 120_000,
  }, async () => {
    const partitions = 6
    const topic = await test.createTopic(test.name('rebalance'), partitions)
    const group = test.name('group')
    const seen = Array.from({ length: partitions }, () => [] as number[])
    const running = new Set<number>()
    const overlaps: number[] = []
    const options = {
      topics: topic,
      group,
      sideTopics: false,
      handler: async (record: Readonly<{ partition: number; offset: number }>) => {
        // Two workers must never process one partition at the same time.
        if (running.has(record.partition)) overlaps.push(record.partition)
        running.add(record.partition)
        await sleep(1)
        seen[record.partition]?.push(record.offset)
        running.delete(record.partition)
      },
    }
    // There are always records in progress, also while workers join.
    const sending = new AbortController()
    let each = 0
    const feeding = (async () => {
      for (; !sending.signal.aborted; each += 20) {
        const records = Array.from({ length: partitions * 20 }, (_, n) => ({
          topic,
          partition: n % partitions,
          value: 'x',
        }))
        await test.send(records)
      }
    })()
    const first = workers.start(options)
    await waitUntil(() => first.counts().processed > 100)
    const second = workers.start(options)
    await waitUntil(() => second.counts().processed > 100, 60_000)
    const third = workers.start(options)
    await waitUntil(() => third.counts().processed > 100, 60_000)
    sending.abort()
    await feeding
    await first.stop()
    await waitUntil(async () => {
      const offsets = await test.committed(group, topic)
      return offsets.length === partitions && offsets.every((offset) => offset === each)
    }, 60_000)
    // Handlers finished before each rebalance, so no record was processed twice either.
    for (const offsets of seen) expect(offsets).toEqual(Array.from({ length: each }, (_, n) => n))
    expect(overlaps).toEqual([])
  })

  it('a handler that is slower than the rebalance loses its partition: its signal aborts, and nothing is committed for it', {
    timeout: 60_000,
  }, async () => {
    const topic = await test.createTopic(test.name('slow'), 2)
    const group = test.name('group')
    const aborted: unknown[] = []
    const release = Promise.withResolvers<void>()
    const slow = workers.start({
      topics: topic,
      group,
      rebalanceGrace: 100,
      handler: async (_, { signal }) => {
        signal.addEventListener('abort', () => aborted.push(signal.reason))
        await release.promise
      },
    })
    await test.send([0, 1].map((partition) => ({ topic, partition, value: 'x' })))
    await waitUntil(() => slow.partitions().filter(({ lag }) => lag > 0).length === 2)
    const fast = workers.start({ topics: topic, group, sideTopics: false, handler: () => {} })
    await waitUntil(() => fast.counts().processed === 1, 40_000)
    await waitUntil(() => aborted.length === 1)
    release.resolve()
    await waitUntil(async () => String(await test.committed(group, topic)) === '1,1')
    expect(String(aborted[0])).toMatch(/belongs to another worker/)
  })
})

describe('a Kafka worker whose broker restarts', needs(broker), () => {
  let test: TestKafka
  let workers: WorkerTest
  beforeAll(() => {
    test = openTestKafka(broker.brokers)
    workers = createWorkerTest(broker.brokers)
  })
  afterAll(async () => {
    await workers.stopAll()
    await test.close()
  })

  it('the worker continues behind its last offset, and reports the outage', {
    timeout: 180_000,
  }, async () => {
    const topic = await test.createTopic('outage', 2)
    const send = (from: number) =>
      test.send(Array.from({ length: 50 }, (_, n) => ({ topic, partition: n % 2, value: `${from + n}` })))
    const seen = new Set<number>()
    const worker = workers.start({
      topics: topic,
      group: 'outage',
      handler: (record) => void seen.add(Number(record.text())),
    })
    await send(0)
    await waitUntil(() => seen.size === 50)
    await broker.stop()
    await waitUntil(() => worker.errors.length > 0, 60_000)
    await broker.start()
    await waitUntil(
      () =>
        send(50).then(
          () => true,
          () => false,
        ),
      90_000,
    )
    await waitUntil(() => seen.size === 100, 90_000)
    await waitUntil(
      async () => (await test.committed('outage', topic)).reduce((a, b) => a + b, 0) >= 100,
      60_000,
    )
  })
})
