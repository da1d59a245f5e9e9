import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { KafkaRecord, RecordContext } from '../../../client/src/kafka/index.ts'
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

  it('a record that waits for its retry moves with its partition, and keeps its attempts and its time', {
    timeout: 60_000,
  }, async () => {
    const topic = await test.createTopic(test.name('moved'), 2)
    const group = test.name('group')
    let nowMs = Date.now()
    const attempts: string[] = []
    const options = (worker: string) => ({
      topics: topic,
      group,
      sideTopics: false,
      retry: ['1h'],
      clock: { nowMs: () => nowMs, elapsedMs: () => 0, setTimer: () => 0, clearTimer: () => {} },
      handler: (record: KafkaRecord, { attempt }: RecordContext) => {
        if (record.text() !== 'late') return
        attempts.push(`${worker} ${record.partition} ${attempt}`)
        if (attempt === 1) throw new Error('later')
      },
    })
    const send = (value: string) => test.send([0, 1].map((partition) => ({ topic, partition, value })))
    const first = workers.start(options('first'))
    await send('late')
    await waitUntil(() => attempts.length === 2)
    const second = workers.start(options('second'))
    await waitUntil(() => second.partitions().length === 1 && first.partitions().length === 1, 40_000)
    const moved = second.partitions()[0]?.partition ?? -1
    expect(attempts.toSorted()).toEqual(['first 0 1', 'first 1 1'])
    nowMs += 3_600_000
    // A record behind the waiting one makes the worker look at its clock.
    await send('next')
    await waitUntil(async () => String(await test.committed(group, topic)) === '2,2')
    expect(attempts.slice(2).toSorted()).toEqual([`first ${1 - moved} 2`, `second ${moved} 2`])
    expect([first.errors, second.errors]).toEqual([[], []])
  })

  it('a wait that is longer than the session leaves the worker in its group, and its other partitions go on', {
    timeout: 60_000,
  }, async () => {
    const topic = await test.createTopic(test.name('patient'), 2)
    const group = test.name('group')
    const seen: string[] = []
    const worker = workers.start({
      topics: topic,
      group,
      sideTopics: false,
      retry: ['8s'],
      handler: (record, { attempt }) => {
        seen.push(`${record.text()} ${attempt}`)
        if (record.text() === 'bad' && attempt === 1) throw new Error('later')
      },
    })
    await test.send([{ topic, partition: 0, value: 'bad' }])
    await waitUntil(() => seen.length === 1)
    const members = async () => {
      const [described] = (await test.admin.describeGroups({ groups: [group] })).values()
      return [...(described?.members.keys() ?? [])]
    }
    const before = await members()
    expect(before).toHaveLength(1)
    let sent = 0
    await waitUntil(async () => {
      await test.send([{ topic, partition: 1, value: `other ${sent++}` }])
      return seen.includes('bad 2')
    })
    expect(await members()).toEqual(before)
    // The other partition was processed during the wait.
    expect(seen.indexOf('bad 2')).toBeGreaterThan(10)
    expect(worker.errors).toEqual([])
  })

  it('partitions that are added to a topic are read from their start, also by a group that starts at the end', async () => {
    const topic = await test.createTopic(test.name('grows'))
    const seen: string[] = []
    await test.send([{ topic, value: 'before the start' }])
    const worker = workers.start({
      topic,
      group: test.name('group'),
      topicCheck: 200,
      startFrom: 'latest',
      sideTopics: false,
      handler: (record) => void seen.push(record.text()),
    })
    await waitUntil(() => worker.partitions().length === 1)
    await test.admin.createPartitions({ topics: [{ name: topic, count: 3 }] })
    await waitUntil(() =>
      test.send([{ topic, partition: 2, value: 'new' }]).then(
        () => true,
        () => false,
      ),
    )
    await waitUntil(() => seen.includes('new'))
    await waitUntil(() => worker.partitions().length === 3)
    expect(seen).toEqual(['new'])
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
