import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import type { Settings } from '../../src/config/settings/settings.ts'
import type { Item } from '../../src/core/items/item.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { listAll } from '../conformance/support/store-reads.ts'
import { createTestStore, postgres, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { sendRequest } from '../http/store-server.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')

describe('the Kafka bridge', needs(kafka, postgres), () => {
  const prefix = `b${Date.now().toString(36)}.`
  let test: TestKafka
  let place: TestStore
  let storage: Storage
  let settings: Partial<Settings>
  let group: string
  const servers: RunningServer[] = []
  const { log, lines } = createReadableLog('info')

  const start = async (): Promise<RunningServer> => {
    const server = await startServer({ settings: testSettings(settings), store: place.target, log })
    servers.push(server)
    return server
  }
  const stopAll = async (): Promise<void> => {
    await Promise.all(servers.splice(0).map((server) => server.stop(0)))
  }
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    place = await createTestStore('PostgreSQL')
    storage = await place.open()
    settings = kafkaSettings(kafka.brokers, {
      topics: [`${prefix}*.dlq`, `${prefix}*-dlt`, `${prefix}plain`],
      topics_ignored: [`${prefix}ignored.dlq`],
      classes: { [`${prefix}escrow.*`]: 'financial' },
    })
    group = settings['kafka.clusters']?.[0]?.group ?? ''
    await start()
  })
  afterAll(async () => {
    await stopAll()
    await test.close()
    await place.drop()
  })

  const lettersOf = (queue: string, count: number): Promise<readonly Item[]> =>
    pollUntil(
      async () => ((await storage.getQueue(queue)) === null ? [] : listAll(storage, queue)),
      (items) => items.length >= count,
    )
  const text = (bytes: Uint8Array | null): string | null => bytes && Buffer.from(bytes).toString()

  it('records of twelve partitions become letters of one queue, each once, with their bytes', async () => {
    const topic = await test.createTopic(`${prefix}orders.dlq`, 12)
    const large = Buffer.alloc(1_000_000, 'x')
    const odd = Buffer.from([0, 255, 128, 10, 13])
    await test.send([
      ...Array.from({ length: 240 }, (_, n) => ({
        topic,
        partition: n % 12,
        key: `k${n}`,
        value: `value ${n}`,
      })),
      { topic, partition: 1, key: null, value: null },
      {
        topic,
        partition: 2,
        key: odd,
        value: odd,
        headers: [
          ['bin', odd],
          ['bin', null],
          ['empty', ''],
        ] as const,
      },
    ])
    await test.send([{ topic, partition: 3, value: large }])
    const letters = await lettersOf(topic, 243)
    expect(letters).toHaveLength(243)
    expect(new Set(letters.map(({ sourceId }) => sourceId)).size).toBe(243)
    const plain = letters.filter(({ payload }) => text(payload)?.startsWith('value '))
    expect(plain.map(({ key, payload }) => `${text(key)} ${text(payload)}`).toSorted()).toEqual(
      Array.from({ length: 240 }, (_, n) => `k${n} value ${n}`).toSorted(),
    )
    const tombstone = letters.find(({ kind }) => kind === 'tombstone')
    expect(tombstone).toMatchObject({ key: null, payload: new Uint8Array() })
    const binary = letters.find(({ headers }) => headers.length === 3)
    expect(binary).toMatchObject({ key: new Uint8Array(odd), payload: new Uint8Array(odd) })
    expect(binary?.headers).toEqual([
      ['bin', new Uint8Array(odd)],
      ['bin', null],
      ['empty', new Uint8Array()],
    ])
    expect(letters.some(({ payload }) => Buffer.from(payload).equals(large))).toBe(true)
  })

  it('a topic that appears later is read from its start, with the class of its rule', async () => {
    const topic = await test.createTopic(`${prefix}escrow.commands-dlt`)
    const ignored = await test.createTopic(`${prefix}ignored.dlq`)
    await test.send([topic, ignored].map((each) => ({ topic: each, value: 'payout' })))
    await lettersOf(topic, 1)
    expect(await storage.getQueue(topic)).toMatchObject({ letterClass: 'financial', reference: 'kafka:test' })
    expect(await storage.getQueue(ignored)).toBeNull()
  })

  it('an envelope, headers of Spring and a broken envelope are read, and nothing of them is lost', async () => {
    const topic = await test.createTopic(`${prefix}plain`)
    const broken =
      '{"original_topic": "orders", "original_value": {"base64": "%%%"}, "error_details": {"message": "x"}}'
    await test.send([
      {
        topic,
        value: JSON.stringify({
          original_topic: 'deals',
          original_partition: 3,
          original_offset: 12_345,
          original_key: 'deal_1',
          original_value: { amount: 5 },
          error_details: {
            exception_class: 'TonApiTimeoutException',
            message: 'timeout',
            stack_trace: 'at x',
          },
          retry_count: 5,
          worker_instance: 'payout-1',
          first_failure_at: '2026-11-18T10:00:00Z',
          last_failure_at: '2026-11-18T10:01:00Z',
        }),
      },
      {
        topic,
        key: 'k',
        value: 'raw',
        headers: [
          ['kafka_dlt-original-topic', 'deals'],
          ['kafka_dlt-original-partition', Buffer.from([0, 0, 0, 7])],
          ['kafka_dlt-original-offset', Buffer.from([0, 0, 0, 0, 0, 0, 0, 9])],
          ['kafka_dlt-original-consumer-group', 'payout'],
          ['kafka_dlt-exception-fqcn', 'java.lang.IllegalStateException'],
          ['kafka_dlt-exception-message', 'no stock'],
        ],
      },
      { topic, value: broken },
    ])
    const [envelope, spring, unreadable] = await lettersOf(topic, 3)
    expect(envelope).toMatchObject({
      sourceId: `test/${topic}/0/0`,
      origin: { kind: 'kafka', name: 'deals', partition: 3, id: '12345', cluster: 'test' },
      failure: { errorClass: 'TonApiTimeoutException', attempts: 5, worker: 'payout-1' },
    })
    expect([text(envelope?.key ?? null), text(envelope?.payload ?? null)]).toEqual(['deal_1', '{"amount":5}'])
    expect(spring).toMatchObject({
      sourceId: 'test/deals/7/9/payout',
      reference: `test/${topic}/0/1`,
      origin: { name: 'deals', partition: 7, id: '9', group: 'payout' },
      failure: { errorClass: 'java.lang.IllegalStateException', message: 'no stock' },
    })
    expect(unreadable?.failure).toMatchObject({
      errorCode: 'undecodable',
      message: expect.stringMatching(/original_value is not base64/),
    })
    expect(text(unreadable?.payload ?? null)).toBe(broken)
  })

  it('one death that is written twice is one letter, and another record at the same place is another', async () => {
    const topic = await test.createTopic(`${prefix}twice.dlq`)
    const headers = [
      ['original_topic', `${prefix}twice`],
      ['original_partition', '0'],
      ['original_offset', '5'],
      ['consumer_group', 'billing'],
    ] as const
    await test.send([{ topic, value: 'same', headers }])
    await lettersOf(topic, 1)
    await test.send([
      { topic, value: 'same', headers },
      { topic, value: 'other', headers },
      { topic, value: 'other', headers },
      { topic, value: 'last' },
    ])
    const letters = await lettersOf(topic, 3)
    expect(letters.map(({ payload }) => text(payload)).toSorted()).toEqual(['last', 'other', 'same'])
  })

  it('a topic that is deleted and created again is read from its start, and others continue', async () => {
    const topic = await test.createTopic(`${prefix}again.dlq`)
    const other = await test.createTopic(`${prefix}beside.dlq`)
    await test.send([{ topic, value: 'before' }])
    await lettersOf(topic, 1)
    await test.admin.deleteTopics({ topics: [topic] })
    await test.send([{ topic: other, value: 'during' }])
    await lettersOf(other, 1)
    await pollUntil(
      () => test.createTopic(topic).catch(() => null),
      (created) => created !== null,
    )
    await pollUntil(
      () => test.send([{ topic, value: 'after' }]).catch(() => null),
      (sent) => sent !== null,
    )
    const letters = await lettersOf(topic, 2)
    expect(letters.map(({ payload }) => text(payload))).toEqual(['before', 'after'])
  })

  it('records of a compacted topic, and of transactions that were aborted, are read as far as they are valid', async () => {
    const topic = await test.createTopic(`${prefix}compacted.dlq`, 1, { 'cleanup.policy': 'compact' })
    await test.send([{ topic, key: 'a', value: '1' }])
    await test.sendInTransaction([{ topic, key: 'a', value: 'aborted' }], false)
    await test.sendInTransaction([{ topic, key: 'a', value: '2' }], true)
    await test.send([{ topic, key: 'b', value: '3' }])
    const letters = await lettersOf(topic, 3)
    expect(letters.map(({ payload }) => text(payload))).toEqual(['1', '2', '3'])
    // The markers of transactions have offsets, too: the position is behind them.
    const positions = await storage.listKafkaPositions({ cluster: 'test', group })
    expect(positions.find((each) => each.topic === topic)).toMatchObject({ nextOffset: 6, recordCount: 3 })
  })

  it('offsets that are reset by hand repeat nothing, and discarded letters do not come back', async () => {
    const topic = await test.createTopic(`${prefix}reset.dlq`)
    await test.send([0, 1, 2].map((n) => ({ topic, value: `v${n}` })))
    const [first] = await lettersOf(topic, 3)
    await storage.write([
      {
        op: 'discard',
        letters: [{ letterId: first?.rootId ?? '' }],
        reason: 'test',
        now: Date.now() * 1_000,
      },
    ])
    await pollUntil(
      () => test.committed(group, topic),
      ([offset]) => offset === 3,
    )
    await stopAll()
    await test.commit(group, topic, [0])
    await start()
    await test.send([{ topic, value: 'v3' }])
    const letters = await lettersOf(topic, 4)
    expect(letters.map(({ payload, state }) => `${text(payload)} ${state}`)).toEqual([
      'v0 discarded',
      'v1 waiting',
      'v2 waiting',
      'v3 waiting',
    ])
  })

  it('two servers share the partitions while records arrive, and store each record once', async () => {
    const topic = await test.createTopic(`${prefix}shared.dlq`, 6)
    let sent = 0
    const send = async (): Promise<void> => {
      await test.send(
        Array.from({ length: 60 }, (_, n) => ({ topic, partition: n % 6, value: `record ${sent + n}` })),
      )
      sent += 60
    }
    const ownersOf = async () => {
      const positions = await storage.listKafkaPositions({ cluster: 'test', group })
      return new Set(positions.filter((each) => each.topic === topic).map(({ owner }) => owner))
    }
    await send()
    await lettersOf(topic, 60)
    const starting = start()
    for (let round = 0; round < 5; round++) await send()
    const second = await starting
    await pollUntil(
      async () => {
        await send()
        return ownersOf()
      },
      (owners) => owners.size === 2,
    )
    const leaving = second.stop(0)
    servers.splice(servers.indexOf(second), 1)
    for (let round = 0; round < 5; round++) await send()
    await leaving
    await send()
    const letters = await lettersOf(topic, sent)
    expect(letters).toHaveLength(sent)
    expect(new Set(letters.map(({ payload }) => text(payload))).size).toBe(sent)
  })

  it('a cluster that cannot be reached is reported by /health with the reason, and the server works', async () => {
    const unreachable = kafkaSettings(['no-such-host.invalid:9092'])
    const server = await startServer({
      settings: testSettings({ ...unreachable, 'kafka.retry_backoff_max': 200 }),
      store: { kind: 'memory' },
      log,
    })
    servers.push(server)
    const { body } = await pollUntil(
      () => sendRequest(`${server.url}/health`, 'GET'),
      ({ body: health }) => health.checks['kafka:test']?.[0].status === 'warn',
    )
    expect(body.status).toBe('warn')
    expect(body.checks['kafka:test'][0].output).toMatch(/no-such-host\.invalid/)
    const ready = await sendRequest(`${server.url}/readyz`, 'GET')
    expect([ready.status, ready.body.checks.kafka]).toEqual([200, 'error'])
    await sendRequest(`${server.url}/api/v1/queues`, 'POST', { name: 'works' }).then(({ status }) =>
      expect(status).toBe(200),
    )
    expect(lines.some(({ msg }) => String(msg).includes('the Kafka cluster cannot be used'))).toBe(true)
  })
})
