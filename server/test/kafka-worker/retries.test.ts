import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ValidationError } from '../../../client/src/kafka/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { openTestKafka, type TestKafka } from '../kafka/test-kafka.ts'
import { createWorkerTest, parseEnvelope, readUntil, type WorkerTest, waitUntil } from './test-worker.ts'

const kafka = await requireService('kafka')

describe('a Kafka worker', needs(kafka), () => {
  let test: TestKafka
  let workers: WorkerTest
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
    workers = createWorkerTest(kafka.brokers)
  })
  afterEach(() => workers.stopAll())
  afterAll(() => test.close())

  const committed = (group: string, topic: string, offsets: readonly number[]) =>
    waitUntil(async () => String(await test.committed(group, topic)) === String(offsets))

  it('processes the records of each partition in order, and commits behind them', async () => {
    const topic = await test.createTopic(test.name('plain'), 3)
    const group = test.name('group')
    await test.send(
      Array.from({ length: 300 }, (_, n) => ({ topic, partition: n % 3, key: `k${n % 3}`, value: `${n}` })),
    )
    const seen: number[][] = [[], [], []]
    const worker = workers.start({
      topics: topic,
      group,
      handler: (record) => void seen[record.partition]?.push(Number(record.text())),
    })
    await committed(group, topic, [100, 100, 100])
    for (const [partition, values] of seen.entries())
      expect(values).toEqual(Array.from({ length: 100 }, (_, n) => n * 3 + partition))
    expect(worker.counts()).toMatchObject({ processed: 300, failed: 0 })
    expect(worker.errors).toEqual([])
  })

  it('a record that is retried pauses its partition only, in order, and the others continue', async () => {
    const topic = await test.createTopic(test.name('retry'), 2)
    const group = test.name('group')
    const seen: string[] = []
    const gate = Promise.withResolvers<void>()
    const retries: number[] = []
    workers.start({
      topics: topic,
      group,
      retry: [50, 50, 50],
      handler: async (record, { attempt }) => {
        const text = record.text()
        if (text === 'bad' && attempt <= 2) throw new Error('not yet')
        // The third attempt starts only after the other partition has been processed.
        if (text === 'bad') await gate.promise
        seen.push(text)
      },
      onRetry: ({ attempt }) => retries.push(attempt),
    })
    await test.send([
      { topic, partition: 0, value: 'bad' },
      { topic, partition: 0, value: 'behind' },
      ...Array.from({ length: 50 }, (_, n) => ({ topic, partition: 1, value: `other ${n}` })),
    ])
    await waitUntil(() => seen.length === 50)
    expect(seen.every((text) => text.startsWith('other'))).toBe(true)
    await committed(group, topic, [0, 50])
    gate.resolve()
    await committed(group, topic, [2, 50])
    expect(seen.slice(50)).toEqual(['bad', 'behind'])
    expect(retries).toEqual([1, 2])
  })

  it('the dead letter has the envelope, the key and the redrive headers, and the offset follows it', async () => {
    const topic = await test.createTopic(test.name('dead'), 3)
    const group = test.name('group')
    const value = '{"deal": 1.50, "big": 12345678901234567890}'
    const dead: unknown[] = []
    await test.send([
      {
        topic,
        partition: 2,
        key: 'deal_1',
        value,
        headers: [
          ['trace', 'abc'],
          ['bytes', Buffer.from([0xff, 0])],
          ['none', null],
        ],
      },
    ])
    const startedAt = Date.now()
    workers.start({
      topics: [topic],
      group,
      instanceId: 'payout-executor-1',
      retry: [10, 10],
      handler: () => {
        const error = new Error('TON Center API timeout after 30s')
        error.name = 'TonApiTimeoutException'
        throw error
      },
      onDeadLetter: (event) => dead.push([event.attempts, event.topic]),
    })
    const [record] = await readUntil(test, `${topic}.dlq`, 1)
    const envelope = parseEnvelope(record)
    expect(record?.partition).toBe(2)
    expect(String(record?.key)).toBe('deal_1')
    expect(String(record?.value)).toContain(`"original_value":${value}`)
    expect(envelope).toMatchObject({
      original_topic: topic,
      original_partition: 2,
      original_offset: 0,
      original_key: 'deal_1',
      error_details: {
        exception_class: 'TonApiTimeoutException',
        message: 'TON Center API timeout after 30s',
      },
      retry_count: 2,
      worker_instance: 'payout-executor-1',
      consumer_group: group,
      headers: [
        { name: 'trace', value: 'abc' },
        { name: 'bytes', value: { base64: '/wA=' } },
        { name: 'none', value: null },
      ],
    })
    expect(envelope.error_details.stack_trace).toHaveLength(500)
    const [first, last] = [envelope.first_failure_at, envelope.last_failure_at].map((time) =>
      Date.parse(time),
    )
    expect(first).toBeGreaterThanOrEqual(startedAt)
    expect(last).toBeGreaterThan(first ?? 0)
    expect(dead).toEqual([[3, `${topic}.dlq`]])
    expect(record?.headers).toEqual([])
  })

  it('errors of deserialization and validation, and configured ones, are not retried', async () => {
    const topic = await test.createTopic(test.name('permanent'))
    class BlockedUser extends Error {}
    let attempts = 0
    workers.start({
      topics: topic,
      group: test.name('group'),
      retry: ['1h'],
      nonRetryable: [BlockedUser, 'TelegramForbidden'],
      handler: (record) => {
        attempts++
        if (record.text() === 'valid') throw new ValidationError('amount is missing')
        if (record.text() === 'user') throw new Error('wrapped', { cause: new BlockedUser('403') })
        if (record.text() === 'name') throw Object.assign(new Error('403'), { name: 'TelegramForbidden' })
        record.json()
      },
    })
    await test.send(['{', 'valid', 'user', 'name'].map((value) => ({ topic, value })))
    const records = await readUntil(test, `${topic}.dlq`, 4)
    expect(records.map((record) => parseEnvelope(record).error_details.exception_class)).toEqual([
      'DeserializationError',
      'ValidationError',
      'Error',
      'TelegramForbidden',
    ])
    expect(records.map((record) => parseEnvelope(record).retry_count)).toEqual([0, 0, 0, 0])
    expect(attempts).toBe(4)
  })

  it('tombstones, null keys, bytes and records of 1 MiB keep their bytes in the dead-letter topic', async () => {
    const topic = await test.createTopic(test.name('bytes'), 1, { 'max.message.bytes': '1100000' })
    workers.start({
      topics: topic,
      group: test.name('group'),
      retry: [],
      handler: () => {
        throw new Error('no')
      },
    })
    const large = Buffer.alloc(2 ** 20, 0xfe)
    const records = [
      { topic, key: 'gone', value: null },
      { topic, key: null, value: 'text' },
      { topic, key: Buffer.from([0xff]), value: Buffer.from([0xfe, 0]) },
      { topic, key: 'large', value: large },
    ]
    for (const record of records) await test.send([record])
    const [tombstone, text, bytes, big] = await readUntil(test, `${topic}.dlq`, 4)
    expect(tombstone).toMatchObject({ value: null, key: Buffer.from('gone') })
    expect(tombstone?.headers.map(([name]) => name)).toContain('kafka_dlt-original-topic')
    expect(parseEnvelope(text)).toMatchObject({ original_key: null, original_value: 'text' })
    expect(text?.key).toBeNull()
    expect(parseEnvelope(bytes)).toMatchObject({
      original_key: { base64: '/w==' },
      original_value: { base64: '/gA=' },
    })
    expect(big?.value?.equals(large)).toBe(true)
  })

  it('aborted records of transactions are not processed', async () => {
    const topic = await test.createTopic(test.name('transactions'))
    const group = test.name('group')
    const seen: string[] = []
    const values = ['aborted 1', 'valid 1', 'aborted 2', 'aborted 3', 'valid 2']
    await test.sendTransactions(
      values.map((value) => ({ records: [{ topic, value }], isCommitted: value.startsWith('valid') })),
    )
    await test.send([{ topic, value: 'last' }])
    workers.start({ topics: topic, group, handler: (record) => void seen.push(record.text()) })
    // Each transaction has a marker behind its record.
    await committed(group, topic, [11])
    expect(seen).toEqual(['valid 1', 'valid 2', 'last'])
  })

  it('records of other target groups are skipped, and the side topic of the group is read', async () => {
    const topic = await test.createTopic(test.name('target'))
    const group = test.name('billing')
    const seen: string[] = []
    const worker = workers.start({
      topics: topic,
      group,
      handler: (record) => void seen.push(`${record.topic === topic} ${record.text()}`),
    })
    await waitUntil(async () => (await test.read(`${topic}.redrive.${group}`).catch(() => null)) !== null)
    await test.send([
      { topic, value: 'theirs', headers: [['redrive-target-group', 'shipping']] },
      { topic, value: 'ours', headers: [['redrive-target-group', group]] },
      { topic: `${topic}.redrive.${group}`, value: 'aside', headers: [['redrive-target-group', group]] },
    ])
    await waitUntil(() => seen.length === 2)
    expect(seen.toSorted()).toEqual(['false aside', 'true ours'])
    expect(worker.counts().skipped).toBe(1)
    await committed(group, topic, [2])
  })

  it('a stop lets the handler finish within its grace, and commits what is done', async () => {
    const topic = await test.createTopic(test.name('stop'))
    const group = test.name('group')
    const started = Promise.withResolvers<void>()
    const finish = Promise.withResolvers<void>()
    const worker = workers.start({
      topics: topic,
      group,
      handler: async (record) => {
        if (record.text() !== 'slow') return
        started.resolve()
        await finish.promise
      },
    })
    await test.send(['fast', 'slow', 'next'].map((value) => ({ topic, value })))
    await started.promise
    const stopping = worker.stop()
    finish.resolve()
    await stopping
    expect(await test.committed(group, topic)).toEqual([2])
    const [described] = (await test.admin.describeGroups({ groups: [group] })).values()
    expect(described?.members?.size ?? 0).toBe(0)
  })

  it('a handler that does not finish in time gets an aborted signal, and its record is read again', async () => {
    const topic = await test.createTopic(test.name('abandon'))
    const group = test.name('group')
    const attempts: number[] = []
    const options = { topics: topic, group, retry: ['1h'] } as const
    const worker = workers.start({
      ...options,
      handler: (_, { attempt, signal }) => {
        attempts.push(attempt)
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        )
      },
    })
    await test.send([{ topic, value: 'x' }])
    await waitUntil(() => attempts.length === 1)
    await worker.stop({ withinMs: 50 })
    workers.start({ ...options, handler: (_, { attempt }) => void attempts.push(attempt) })
    await committed(group, topic, [1])
    // The attempt that was stopped does not count.
    expect(attempts).toEqual([1, 1])
  })
})
