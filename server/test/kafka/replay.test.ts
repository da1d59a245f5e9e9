import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type SentRecord, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')

describe('redrives to Kafka', needs(kafka), () => {
  const prefix = `r${Date.now().toString(36)}.`
  let test: TestKafka
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
  })
  afterAll(() => test.close())

  const settings =
    kafka.missing === undefined ? kafkaSettings(kafka.brokers, { topics: [`${prefix}*.dlq`] }) : {}
  describeServer('with PostgreSQL', 'PostgreSQL', settings, (server) => {
    const death = (
      over: Partial<SentRecord> & Readonly<{ source: string; offset?: number; group?: string }>,
    ): SentRecord => {
      const { source, offset = 0, group = 'billing', headers = [], ...rest } = over
      return {
        topic: `${source}.dlq`,
        key: 'order-1',
        value: `value ${offset}`,
        headers: [
          ['trace', 'abc'],
          ...headers,
          ['kafka_dlt-original-topic', source],
          ['kafka_dlt-original-partition', Buffer.from([0, 0, 0, 1])],
          ['kafka_dlt-original-offset', Buffer.from([0, 0, 0, 0, 0, 0, 0, offset])],
          ['kafka_dlt-original-consumer-group', group],
          ['kafka_dlt-exception-fqcn', 'java.lang.IllegalStateException'],
          ['kafka_dlt-exception-message', 'no stock'],
        ],
        ...rest,
      }
    }
    /** Creates a topic of 3 partitions and its dead-letter topic. */
    const createPair = async (name: string): Promise<string> => {
      const source = await test.createTopic(`${prefix}${name}`, 3)
      await test.createTopic(`${source}.dlq`)
      return source
    }
    const lettersOf = async (source: string, isExpected: (letters: Body[]) => boolean): Promise<Body[]> => {
      const { body } = await pollUntil(
        () => server.request('GET', `/api/v1/letters?queue=${source}.dlq&limit=100`),
        ({ status, body: page }) => status === 200 && isExpected(page.letters),
      )
      return body.letters
    }
    const redrive = async (ids: readonly string[], target?: string) =>
      server.call('POST', '/api/v1/letters/redrive', {
        ids,
        reason: 'fixed',
        include_dead: true,
        ...(target !== undefined && { target }),
      })
    const recordsOf = (topic: string, count: number) =>
      pollUntil(
        () => test.read(topic),
        (records) => records.length >= count,
      )

    it('a redriven letter keeps key, bytes, other headers and partition, and is RESOLVED when its group passed it', async () => {
      const source = await createPair('orders')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      const [record] = await recordsOf(source, 1)
      expect(record).toMatchObject({
        partition: 1,
        offset: 0,
        key: Buffer.from('order-1'),
        value: Buffer.from('value 0'),
      })
      expect(record?.headers.map(([name, value]) => [name, String(value)])).toEqual([
        ['trace', 'abc'],
        ['redrive-letter-id', letter.id],
        ['redrive-attempt', '1'],
        ['redrive-target-group', 'billing'],
      ])
      const [during] = await lettersOf(source, () => true)
      expect(during.status).toBe('RETRYING')
      await test.commit('billing', source, [0, 1, 0])
      await lettersOf(source, ([only]) => only.status === 'RESOLVED')
      const detail = await server.call('GET', `/api/v1/letters/${letter.id}`)
      expect(detail.redrives[0]).toMatchObject({
        target: { kind: 'kafka', name: source, partition: 1, id: '0' },
        outcome: 'resolved',
      })
      expect(await test.read(source)).toHaveLength(1)
    })

    it('a record that dies again returns to its letter, also if its worker writes the death twice', async () => {
      const source = await createPair('again')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      const [record] = await recordsOf(source, 1)
      const copied = record?.headers.filter(([name]) => name.startsWith('redrive-')) ?? []
      const again = death({ source, offset: record?.offset ?? -1, headers: copied })
      await test.send([again, again])
      const [after] = await lettersOf(source, ([only]) => only.status === 'PENDING' && only.retry_count === 1)
      expect(after.id).toBe(letter.id)
      // A death that arrives after the next redrive has started belongs to the one before, and changes
      // nothing.
      await redrive([letter.id])
      await recordsOf(source, 2)
      await test.send([again])
      await test.commit('billing', source, [0, 2, 0])
      const resolved = await lettersOf(source, ([only]) => only.status === 'RESOLVED')
      expect(resolved).toMatchObject([{ id: letter.id, retry_count: 1 }])
      // This one is the death of the last redrive, although its letter was resolved already.
      const last = [
        ['redrive-letter-id', letter.id],
        ['redrive-attempt', '2'],
      ] as const
      await test.send([death({ source, offset: 1, headers: last })])
      const reopened = await lettersOf(source, ([only]) => only.status === 'PENDING')
      expect(reopened).toMatchObject([{ id: letter.id, retry_count: 2 }])
    })

    it('a worker that drops the headers is recognised by the place of the record, or by key and value', async () => {
      const source = await createPair('dropped')
      await test.commit('billing', source, [0, 0, 0])
      const plain = {
        topic: `${source}.dlq`,
        key: 'k',
        value: 'same bytes',
        headers: [
          ['original_topic', source],
          ['error', 'no'],
        ],
      } as const
      await test.send([death({ source, value: 'by place' }), plain])
      const letters = await lettersOf(source, (all) => all.length === 2)
      await redrive(letters.map(({ id }) => id))
      const records = await recordsOf(source, 2)
      const byPlace = records.find(({ value }) => String(value) === 'by place')
      await test.send([death({ source, offset: byPlace?.offset ?? -1, value: 'by place' }), plain])
      const returned = await lettersOf(source, (all) => all.every(({ retry_count }) => retry_count === 1))
      expect(returned.map(({ id }) => id).toSorted()).toEqual(letters.map(({ id }) => id).toSorted())
    })

    it('the death of another group, or of an event with the same headers, is a letter of its own', async () => {
      const source = await createPair('others')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      const [record] = await recordsOf(source, 1)
      const copied = record?.headers.filter(([name]) => name.startsWith('redrive-')) ?? []
      await test.send([
        death({ source, offset: record?.offset ?? -1, headers: copied, group: 'shipping' }),
        { ...death({ source: `${prefix}derived`, offset: 7, headers: copied }), topic: `${source}.dlq` },
      ])
      const letters = await lettersOf(source, (all) => all.length === 3)
      expect(letters.find(({ id }) => id === letter.id)).toMatchObject({ status: 'RETRYING', retry_count: 0 })
      await test.commit('billing', source, [0, 1, 0])
      await lettersOf(source, (all) =>
        all.some(({ id, status }) => id === letter.id && status === 'RESOLVED'),
      )
    })

    it('a topic that other groups read needs the side topic, the header or force', async () => {
      const source = await createPair('shared')
      await test.commit('billing', source, [0, 0, 0])
      await test.commit('shipping', source, [0, 0, 0])
      await test.send([0, 1, 2, 3].map((offset) => death({ source, offset })))
      const letters = await lettersOf(source, (all) => all.length === 4)
      const [refused, side, header, forced] = letters.map(({ id }) => id)
      const { status, body } = await server.request('POST', '/api/v1/letters/redrive', {
        ids: [refused],
        reason: 'fixed',
      })
      expect([status, body.error.code]).toEqual([409, 'KAFKA_TOPIC_SHARED'])
      expect(body.error.message).toMatch(/shipping.*kafka\.test\.replay-side-topic/)
      const selection = { action: 'redrive', filter: { queue: `${source}.dlq` } }
      const preview = await server.call('POST', '/api/v1/campaigns/preview', selection)
      expect(preview.targets).toEqual([{ queue: 'kafka.test.replay', count: 4 }])
      expect(preview.warnings.join()).toMatch(/other consumer groups read topic .*shared.*shipping/)
      const all = await server.request('POST', `/internal/v1/dlq/replay-all?topic=${source}.dlq`)
      expect([all.status, all.body.error_code]).toEqual([409, 'INVALID_STATE_TRANSITION'])
      // An automatic redrive has no caller: the letter returns with the reason.
      await server.call('PATCH', `/api/v1/queues/${source}.dlq`, {
        policy: { redrive: { mode: 'auto', redrives_max: 1, backoff: { kind: 'fixed', delays: ['0s'] } } },
      })
      const dead = await lettersOf(source, (found) => found.every(({ status }) => status === 'DEAD'))
      for (const { failure } of dead)
        expect(failure).toMatchObject({
          error_code: 'other_groups',
          message: expect.stringContaining('shipping'),
        })
      await redrive([side], 'kafka.test.replay-side-topic')
      await redrive([header], 'kafka.test.replay-header')
      await redrive([forced], 'kafka.test.replay-forced')
      expect(await recordsOf(source, 2)).toHaveLength(2)
      const [aside] = await pollUntil(
        () => test.read(`${source}.redrive.billing`).catch(() => []),
        (records) => records.length === 1,
      )
      expect(aside).toMatchObject({ partition: 1 })
      await test.commit('billing', `${source}.redrive.billing`, [0, 1, 0])
      await test.commit('billing', source, [0, 2, 0])
      await lettersOf(source, (all) => all.filter(({ status }) => status === 'RESOLVED').length === 3)
    })

    it('a letter whose group is unknown or gone ends as unknown, and waits for a person', async () => {
      const source = await createPair('gone')
      const nameless = { topic: `${source}.dlq`, value: 'x', headers: [['original_topic', source]] } as const
      await test.send([death({ source, group: test.name('gone') }), nameless])
      const letters = await lettersOf(source, (all) => all.length === 2)
      await redrive(letters.map(({ id }) => id))
      const ended = await lettersOf(source, (all) => all.every(({ status }) => status === 'PENDING'))
      for (const { failure } of ended) expect(failure.error_code).toBe('outcome_unknown')
    })

    it('a letter stays RETRYING through a restart of the server, and its outcome is found after it', async () => {
      const source = await createPair('restart')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      await recordsOf(source, 1)
      await server.stop(0)
      await server.start()
      const [during] = await lettersOf(source, () => true)
      expect(during.status).toBe('RETRYING')
      await test.commit('billing', source, [0, 1, 0])
      await lettersOf(source, ([only]) => only.status === 'RESOLVED')
    })

    it('a record of 1 MiB is sent with its bytes; one that its topic does not accept returns with the reason', async () => {
      const large = Buffer.alloc(2 ** 20, 0xfe)
      const configs = { 'max.message.bytes': '1200000' }
      const source = await test.createTopic(`${prefix}large`, 3, configs)
      const small = await test.createTopic(`${prefix}small`, 3)
      for (const topic of [source, small]) {
        await test.createTopic(`${topic}.dlq`, 1, configs)
        await test.send([death({ source: topic, value: large })])
        const [letter] = await lettersOf(topic, (letters) => letters.length === 1)
        await redrive([letter.id])
      }
      const [record] = await recordsOf(source, 1)
      expect(record?.value?.equals(large)).toBe(true)
      const [refused] = await lettersOf(small, ([only]) => only.failure.error_code === 'refused')
      expect(refused).toMatchObject({
        status: 'PENDING',
        failure: { message: expect.stringMatching(/Kafka refused the record: MESSAGE_TOO_LARGE/) },
      })
    })

    it('a letter whose topic does not exist returns with the reason', async () => {
      const source = `${prefix}missing`
      await test.createTopic(`${source}.dlq`)
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      const [returned] = await lettersOf(source, ([only]) => only.failure.error_code === 'topic_missing')
      expect(returned).toMatchObject({
        status: 'PENDING',
        failure: { message: `topic ${source} does not exist` },
      })
    })

    it('a side topic with other partition counts gets each record, and the letters are resolved there', async () => {
      const counts = { more: 6, fewer: 1 }
      for (const [name, count] of Object.entries(counts)) {
        const source = await createPair(name)
        const side = await test.createTopic(`${source}.redrive.billing`, count)
        await test.send([death({ source })])
        const [letter] = await lettersOf(source, (letters) => letters.length === 1)
        await redrive([letter.id], 'kafka.test.replay-side-topic')
        const [record] = await recordsOf(side, 1)
        // The original partition is 1. Where it does not exist, the key decides.
        expect(record?.partition).toBe(Math.min(1, count - 1))
        await test.commit(
          'billing',
          side,
          Array.from({ length: count }, (_, at) => Number(at === record?.partition)),
        )
        await lettersOf(source, ([only]) => only.status === 'RESOLVED')
      }
    })

    it('a group that is reset to an earlier offset has not passed the record; one that died in it is not resolved', async () => {
      const source = await createPair('moves')
      await test.commit('billing', source, [0, 5, 0])
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await test.commit('billing', source, [0, 0, 0])
      await redrive([letter.id])
      await recordsOf(source, 1)
      await test.commit('billing', source, [0, 0, 0])
      const [during] = await lettersOf(source, () => true)
      expect(during.status).toBe('RETRYING')
      // Committed, reset, and processed again: the second death returns the letter, which was resolved
      // before.
      await test.commit('billing', source, [0, 1, 0])
      await lettersOf(source, ([only]) => only.status === 'RESOLVED')
      await test.commit('billing', source, [0, 0, 0])
      const [record] = await recordsOf(source, 1)
      const copied = record?.headers.filter(([name]) => name.startsWith('redrive-')) ?? []
      await test.send([death({ source, offset: record?.offset ?? -1, headers: copied })])
      const [reopened] = await lettersOf(source, ([only]) => only.status === 'PENDING')
      expect(reopened).toMatchObject({ id: letter.id, retry_count: 1 })
    })

    it('a death within the grace after the commit returns the letter', async () => {
      const source = await createPair('grace')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      const [record] = await recordsOf(source, 1)
      const copied = record?.headers.filter(([name]) => name.startsWith('redrive-')) ?? []
      await test.commit('billing', source, [0, 1, 0])
      await test.send([death({ source, offset: record?.offset ?? -1, headers: copied })])
      const [again] = await lettersOf(source, ([only]) => only.retry_count === 1)
      expect(again).toMatchObject({ id: letter.id, status: 'PENDING' })
      const detail = await server.call('GET', `/api/v1/letters/${letter.id}`)
      expect(detail.redrives.map(({ outcome }: Body) => outcome)).toEqual(['failed'])
    })

    it('a letter whose topic is created again while it is processed ends as unknown, whatever the group commits there', async () => {
      const source = await createPair('again-created')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      await redrive([letter.id])
      await recordsOf(source, 1)
      // The outcome of a later record shows that the server has looked at the topic in the meantime.
      const witness = await createPair('witness')
      await test.send([death({ source: witness })])
      const [other] = await lettersOf(witness, (letters) => letters.length === 1)
      await redrive([other.id])
      await recordsOf(witness, 1)
      await test.commit('billing', witness, [0, 1, 0])
      await lettersOf(witness, ([only]) => only.status === 'RESOLVED')
      await test.admin.deleteTopics({ topics: [source] })
      await pollUntil(
        () => test.createTopic(source, 3).catch(() => null),
        (created) => created !== null,
      )
      await pollUntil(
        () => test.send([0, 1].map(() => ({ topic: source, partition: 1, value: 'new' }))).catch(() => null),
        (sent) => sent !== null,
      )
      await test.commit('billing', source, [0, 2, 0])
      const [ended] = await lettersOf(source, ([only]) => only.status !== 'RETRYING')
      expect(ended).toMatchObject({
        status: 'PENDING',
        failure: {
          error_code: 'outcome_unknown',
          message: expect.stringMatching(/deleted or created again since/),
        },
      })
    })

    it('redrives of one letter at the same time are refused, except for one', async () => {
      const source = await createPair('race')
      await test.send([death({ source })])
      const [letter] = await lettersOf(source, (letters) => letters.length === 1)
      const answers = await Promise.all(
        [1, 2, 3].map(() => server.request('POST', '/internal/v1/dlq/replay', { id: letter.id })),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
      await recordsOf(source, 1)
      await test.commit('billing', source, [0, 1, 0])
      await lettersOf(source, ([only]) => only.status === 'RESOLVED')
      expect(await test.read(source)).toHaveLength(1)
    })

    it('automatic redrives and campaigns go to Kafka, with tombstones and null keys unchanged', async () => {
      const source = await createPair('auto')
      await test.send([death({ source, key: null, value: null }), death({ source, offset: 1, key: null })])
      await lettersOf(source, (all) => all.length === 2)
      await server.call('POST', '/api/v1/campaigns', {
        name: 'all of auto',
        reason: 'fixed',
        action: 'redrive',
        filter: { queue: `${source}.dlq` },
      })
      const records = await recordsOf(source, 2)
      expect(records.map(({ key, value }) => [key, value && String(value)]).toSorted()).toEqual([
        [null, null],
        [null, 'value 1'],
      ])
      await test.commit('billing', source, [0, 2, 0])
      await lettersOf(source, (all) => all.every(({ status }) => status === 'RESOLVED'))

      const automatic = await createPair('policy')
      await test.send([death({ source: automatic })])
      await lettersOf(automatic, (all) => all.length === 1)
      await server.call('PATCH', `/api/v1/queues/${automatic}.dlq`, {
        policy: { redrive: { mode: 'auto', backoff: { kind: 'fixed', delays: ['0s'] } } },
      })
      await recordsOf(automatic, 1)
    })
  })
})
