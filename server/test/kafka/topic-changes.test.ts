import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type SentRecord, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')

describe('dead-letter topics that are not as usual', needs(kafka), () => {
  const prefix = `t${Date.now().toString(36)}.`
  let test: TestKafka
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
  })
  afterAll(() => test.close())

  const settings =
    kafka.missing === undefined ? kafkaSettings(kafka.brokers, { topics: [`${prefix}*.dlq`] }) : {}
  describeServer('with PostgreSQL', 'PostgreSQL', settings, (server) => {
    const lettersOf = async (topic: string, count: number): Promise<Body[]> => {
      const { body } = await pollUntil(
        () => server.request('GET', `/api/v1/letters?queue=${topic}&limit=500`),
        ({ status, body: page }) => status === 200 && page.letters.length >= count,
        60_000,
      )
      return body.letters
    }
    const textsOf = (letters: readonly Body[]): string[] =>
      letters.map(({ payload }) => payload.text.slice(0, 40)).toSorted()

    /** Resolves when the server has looked at its topics a few times. */
    const lookSeveralTimes = async (): Promise<void> => {
      const seen = new Set<string>()
      await pollUntil(
        async () => seen.add((await server.call('GET', '/api/v1/kafka')).clusters[0].read_at),
        ({ size }) => size > 8,
      )
    }

    it('aborted records of one producer are not read, also of several transactions', async () => {
      const topic = await test.createTopic(`${prefix}transactions.dlq`)
      const values = ['aborted 1', 'valid 1', 'aborted 2', 'aborted 3', 'valid 2', 'aborted 4']
      await test.sendTransactions(
        values.map((value) => ({
          records: [{ topic, value }],
          isCommitted: value.startsWith('valid'),
        })),
      )
      await test.send([{ topic, value: 'last' }])
      expect(textsOf(await lettersOf(topic, 3))).toEqual(['last', 'valid 1', 'valid 2'])
    })

    it('aborted records are not read if their transaction is larger than an answer of Kafka', async () => {
      const topic = await test.createTopic(`${prefix}large.dlq`)
      const padding = 'x'.repeat(800_000)
      const records = Array.from({ length: 14 }, (_, n) => ({ topic, value: `aborted ${n} ${padding}` }))
      await test.sendTransactions([
        { records, isCommitted: false },
        { records: [{ topic, value: 'valid' }], isCommitted: true },
      ])
      await test.send([{ topic, value: 'last' }])
      expect(textsOf(await lettersOf(topic, 2))).toEqual(['last', 'valid'])
    })

    it('partitions that are added to a topic are read', async () => {
      const topic = await test.createTopic(`${prefix}grows.dlq`, 1)
      await test.send([{ topic, value: 'before' }])
      await lettersOf(topic, 1)
      // The rebalance that the new topic has caused would find the partitions, too.
      await lookSeveralTimes()
      await test.admin.createPartitions({ topics: [{ name: topic, count: 3 }] })
      await pollUntil(
        () => test.send([{ topic, partition: 2, value: 'after' }]).catch(() => null),
        (sent) => sent !== null,
      )
      expect(textsOf(await lettersOf(topic, 2))).toEqual(['after', 'before'])
    })

    it('a record of a topic that was created again is another letter, although place and bytes are those of the first', async () => {
      const topic = await test.createTopic(`${prefix}source.dlq`)
      const death = (createdAt: string): SentRecord => ({
        topic,
        value: JSON.stringify({
          original_topic: `${prefix}source`,
          original_partition: 0,
          original_offset: 5,
          original_timestamp: createdAt,
          original_value: { order: 1 },
          consumer_group: 'billing',
          error_details: { message: 'no stock' },
        }),
      })
      await test.send([death('2026-11-18T10:00:00Z')])
      await lettersOf(topic, 1)
      // A worker that crashes after the dead letter writes it twice; the second record is of another topic.
      await test.send([
        death('2026-11-18T10:00:00Z'),
        death('2026-11-18T11:00:00Z'),
        death('2026-11-18T11:00:00Z'),
      ])
      await test.send([{ topic, value: 'last' }])
      const letters = await lettersOf(topic, 3)
      expect(letters).toHaveLength(3)
      expect(textsOf(letters.filter(({ origin }) => origin.consumer_group === 'billing'))).toEqual([
        '{"order":1}',
        '{"order":1}',
      ])
    })

    it('the place of a record names the letter of the newest topic, if a topic was created again', async () => {
      const topic = await test.createTopic(`${prefix}place.dlq`)
      await test.send([{ topic, value: 'before' }])
      await lettersOf(topic, 1)
      await test.admin.deleteTopics({ topics: [topic] })
      await pollUntil(
        () => test.createTopic(topic).catch(() => null),
        (created) => created !== null,
      )
      await pollUntil(
        () => test.send([{ topic, value: 'after' }]).catch(() => null),
        (sent) => sent !== null,
      )
      await lettersOf(topic, 2)
      const found = await server.call('GET', `/internal/v1/dlq/${topic}/0?partition=0`)
      expect(found.original_value.text).toBe('after')
    })

    it('records of a topic that was compacted are read across the gaps', { timeout: 120_000 }, async () => {
      const topic = await test.createTopic(`${prefix}compacted.dlq`, 1, {
        'cleanup.policy': 'compact',
        'segment.ms': '100',
        'min.cleanable.dirty.ratio': '0.001',
        'max.compaction.lag.ms': '100',
      })
      await server.stop(0)
      let sent = 0
      const hasGap = (offsets: readonly number[]) =>
        offsets.some((offset, at) => at > 0 && offset > (offsets[at - 1] ?? 0) + 1)
      await pollUntil(
        async () => {
          await test.send(
            Array.from({ length: 20 }, () => ({ topic, key: `k${sent % 3}`, value: `v${sent++}` })),
          )
          return (await test.read(topic)).map(({ offset }) => offset)
        },
        hasGap,
        90_000,
      )
      await server.start()
      const { clusters } = await pollUntil(
        () => server.call('GET', '/api/v1/kafka'),
        (body) => body.clusters[0].topics.find((each: Body) => each.topic === topic)?.unread_count === 0,
        60_000,
      )
      const { partitions, record_count: count } = clusters[0].topics.find(
        (each: Body) => each.topic === topic,
      )
      expect(partitions).toMatchObject([{ position: sent, end: sent }])
      expect(count).toBeLessThan(sent)
      const left = (await test.read(topic)).map(({ value }) => String(value))
      const letters = await lettersOf(topic, count)
      expect(letters).toHaveLength(count)
      expect(textsOf(letters)).toEqual(expect.arrayContaining(left))
    })

    it.each(['gzip', 'snappy', 'lz4', 'zstd'] as const)(
      'records that are compressed with %s are read',
      async (compression) => {
        const topic = await test.createTopic(`${prefix}${compression}.dlq`)
        const records = Array.from({ length: 50 }, (_, n) => ({ topic, value: `value ${n}`, key: `k${n}` }))
        await test.send(records, compression)
        const letters = await lettersOf(topic, 50)
        expect(textsOf(letters)).toEqual(records.map(({ value }) => value).toSorted())
      },
    )
  })
})
