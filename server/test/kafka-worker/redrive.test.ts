import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from '../kafka/test-kafka.ts'
import { createWorkerTest, type WorkerTest, waitUntil } from './test-worker.ts'

const kafka = await requireService('kafka')

describe('a Kafka worker and Redrive', needs(kafka), () => {
  const prefix = `w${Date.now().toString(36)}.`
  let test: TestKafka
  let workers: WorkerTest
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
    workers = createWorkerTest(kafka.brokers)
  })
  afterEach(() => workers.stopAll())
  afterAll(() => test.close())

  const settings =
    kafka.missing === undefined ? kafkaSettings(kafka.brokers, { topics: [`${prefix}*.dlq`] }) : {}
  describeServer('with PostgreSQL', 'PostgreSQL', settings, (server) => {
    const redrive = () => ({ client: createClient({ url: server.url }), cluster: 'test' })
    const lettersOf = async (topic: string, isExpected: (letters: Body[]) => boolean): Promise<Body[]> => {
      const { body } = await pollUntil(
        () => server.request('GET', `/api/v1/letters?queue=${topic}.dlq&limit=100`),
        ({ status, body: page }) => status === 200 && isExpected(page.letters),
        30_000,
      )
      return body.letters
    }
    const send = (ids: readonly string[], target?: string) =>
      server.call('POST', '/api/v1/letters/redrive', {
        ids,
        reason: 'fixed',
        include_dead: true,
        ...(target !== undefined && { target }),
      })
    const committed = (group: string, topic: string, offset: number) =>
      waitUntil(async () => (await test.committed(group, topic))[0] === offset)
    const parkedItems = async (topic: string, group: string) => {
      const name = `${topic}.0.parked.${group}`
      const client = createClient({ url: server.url })
      const [scheduled, waiting] = await Promise.all([
        client.listScheduledItems(name).catch(() => []),
        client.listItems(name).catch(() => []),
      ])
      return [...scheduled, ...waiting].length
    }

    it('a dead record becomes a letter; redriven it dies again and returns, and redriven again it is RESOLVED', async () => {
      const topic = await test.createTopic(`${prefix}round`)
      const group = test.name('billing')
      let isFixed = false
      const seen: unknown[] = []
      workers.start({
        topics: topic,
        group,
        retry: [0],
        handler: (record, { attempt }) => {
          seen.push([record.topic === topic, attempt])
          if (!isFixed) throw new Error('no stock')
        },
      })
      await test.send([{ topic, key: 'order-1', value: '{"order": 1}', headers: [['trace', 'abc']] }])
      const [letter] = await lettersOf(topic, (letters) => letters.length === 1)
      expect(letter).toMatchObject({
        status: 'PENDING',
        retry_count: 0,
        failure: { message: 'no stock', attempts: 1 },
        origin: { name: topic, partition: 0, id: '0', consumer_group: group },
      })
      await send([letter.id])
      const [again] = await lettersOf(topic, ([only]) => only.status === 'PENDING' && only.retry_count === 1)
      expect(again.id).toBe(letter.id)
      isFixed = true
      // The side topic reaches this group only.
      await send([letter.id], 'kafka.test.replay-side-topic')
      await lettersOf(topic, ([only]) => only.status === 'RESOLVED')
      expect(await lettersOf(topic, () => true)).toHaveLength(1)
      expect(seen).toEqual([
        [true, 1],
        [true, 2],
        [true, 1],
        [true, 2],
        [false, 1],
      ])
      const detail = await server.call('GET', `/api/v1/letters/${letter.id}`)
      expect(detail.redrives.map(({ outcome }: Body) => outcome).toSorted()).toEqual(['failed', 'resolved'])
    })

    it('a record that dies in the side topic returns to its letter', async () => {
      const topic = await test.createTopic(`${prefix}side`)
      const group = test.name('billing')
      workers.start({
        topics: topic,
        group,
        retry: [],
        handler: () => {
          throw new Error('no stock')
        },
      })
      await test.send([{ topic, value: 'x' }])
      const [letter] = await lettersOf(topic, (letters) => letters.length === 1)
      await send([letter.id], 'kafka.test.replay-side-topic')
      const [again] = await lettersOf(topic, ([only]) => only.status === 'PENDING' && only.retry_count === 1)
      expect(again.id).toBe(letter.id)
      expect(await lettersOf(topic, () => true)).toHaveLength(1)
    })

    it('a long wait is handed over: the partition continues, records of the same key wait in order behind it', async () => {
      const topic = await test.createTopic(`${prefix}long`)
      const group = test.name('group')
      const seen: string[] = []
      let failures = 0
      const options = {
        topics: topic,
        group,
        retry: [0, 3_000],
        waitMax: 1_000,
        redrive: redrive(),
        handler: (record: Readonly<{ text(): string; key: Buffer | null }>, { attempt }: Body) => {
          seen.push(`${record.text()} ${attempt}`)
          if (record.text() === 'late' && failures++ < 2) throw new Error('not yet')
        },
      }
      const first = workers.start(options)
      await test.send([
        { topic, key: 'a', value: 'late' },
        { topic, key: 'b', value: 'other' },
        { topic, key: 'a', value: 'second' },
        { topic, key: null, value: 'free' },
        { topic, key: 'a', value: 'third' },
      ])
      await committed(group, topic, 5)
      expect(seen).toEqual(['late 1', 'late 2', 'other 1', 'free 1'])
      expect(await parkedItems(topic, group)).toBe(3)
      // Another worker takes over: it finds the records in Redrive.
      await first.stop({ withinMs: 1_000 })
      const second = workers.start(options)
      await waitUntil(() => seen.length === 7)
      expect(seen.slice(4)).toEqual(['late 3', 'second 1', 'third 1'])
      await waitUntil(async () => (await parkedItems(topic, group)) === 0)
      await test.send([{ topic, key: 'a', value: 'after' }])
      await committed(group, topic, 6)
      expect(seen.at(-1)).toBe('after 1')
      expect([first.errors, second.errors]).toEqual([[], []])
    })

    it('a record that fails after its long wait is dead, and its key goes on', async () => {
      const topic = await test.createTopic(`${prefix}late`)
      const group = test.name('group')
      const seen: string[] = []
      workers.start({
        topics: topic,
        group,
        retry: [200],
        waitMax: 0,
        redrive: redrive(),
        handler: (record, { attempt }) => {
          seen.push(`${record.text()} ${attempt}`)
          if (record.text() === 'bad') throw new Error('never')
        },
      })
      await test.send(['bad', 'good'].map((value) => ({ topic, key: 'a', value })))
      const [letter] = await lettersOf(topic, (letters) => letters.length === 1)
      expect(letter.failure).toMatchObject({ message: 'never', attempts: 1 })
      await waitUntil(() => seen.length === 3)
      expect(seen).toEqual(['bad 1', 'bad 2', 'good 1'])
      await waitUntil(async () => (await parkedItems(topic, group)) === 0)
    })

    it('a held key keeps its records in order until the dead one is RESOLVED, also over a restart', async () => {
      const topic = await test.createTopic(`${prefix}hold`)
      const group = test.name('group')
      const seen: string[] = []
      let isFixed = false
      const options = {
        topics: topic,
        group,
        retry: [],
        holdKeys: true,
        holdCheck: 100,
        redrive: redrive(),
        handler: (record: Readonly<{ text(): string }>) => {
          if (record.text() === 'first' && !isFixed) throw new Error('no stock')
          seen.push(record.text())
        },
      }
      const one = workers.start(options)
      await test.send([
        { topic, key: 'a', value: 'first' },
        { topic, key: 'a', value: 'second' },
        { topic, key: 'b', value: 'other' },
      ])
      await committed(group, topic, 3)
      const [letter] = await lettersOf(topic, (letters) => letters.length === 1)
      await one.stop({ withinMs: 1_000 })
      workers.start(options)
      await test.send([{ topic, key: 'a', value: 'third' }])
      await committed(group, topic, 4)
      expect(seen).toEqual(['other'])
      isFixed = true
      await send([letter.id])
      await lettersOf(topic, ([only]) => only.status === 'RESOLVED')
      await waitUntil(() => seen.length === 4)
      expect(seen).toEqual(['other', 'first', 'second', 'third'])
      await waitUntil(async () => (await parkedItems(topic, group)) === 0)
    })

    it('a discarded letter ends the hold of its key; a parked record that dies holds it again', async () => {
      const topic = await test.createTopic(`${prefix}discard`)
      const group = test.name('group')
      const seen: string[] = []
      workers.start({
        topics: topic,
        group,
        retry: [],
        holdKeys: true,
        holdCheck: 100,
        redrive: redrive(),
        handler: (record) => {
          if (record.text().startsWith('bad')) throw new Error('no stock')
          seen.push(record.text())
        },
      })
      await test.send(['bad 1', 'bad 2', 'good'].map((value) => ({ topic, key: 'a', value })))
      const [first] = await lettersOf(topic, (letters) => letters.length === 1)
      await server.call('POST', '/api/v1/letters/discard', { ids: [first.id], reason: 'obsolete' })
      const letters = await lettersOf(topic, (all) => all.length === 2)
      expect(seen).toEqual([])
      const second = letters.find(({ id }) => id !== first.id)
      await server.call('POST', '/api/v1/letters/discard', { ids: [second.id], reason: 'obsolete' })
      await waitUntil(() => seen.length === 1)
      expect(seen).toEqual(['good'])
    })

    it('a new group starts only when Redrive answers, because it may have records of the group', async () => {
      const topic = await test.createTopic(`${prefix}down`)
      const group = test.name('group')
      const seen: string[] = []
      let isUp = false
      const worker = workers.start({
        topics: topic,
        group,
        redrive: { client: createClient({ url: server.url, retriesMax: 0, fetch: refuseUntil(() => isUp) }) },
        handler: (record) => void seen.push(record.text()),
      })
      await test.send([{ topic, value: 'x' }])
      await waitUntil(() => worker.errors.length > 0)
      expect(seen).toEqual([])
      isUp = true
      await waitUntil(() => seen.length === 1)
    })

    it('while Redrive does not answer, a long wait blocks its partition until it is over', async () => {
      const topic = await test.createTopic(`${prefix}away`)
      const group = test.name('group')
      const seen: string[] = []
      let isUp = true
      const worker = workers.start({
        topics: topic,
        group,
        retry: [1_000],
        waitMax: 0,
        redrive: { client: createClient({ url: server.url, retriesMax: 0, fetch: refuseUntil(() => isUp) }) },
        handler: (record, { attempt }) => {
          isUp = false
          seen.push(`${record.text()} ${attempt}`)
          if (record.text() === 'late' && attempt === 1) throw new Error('not yet')
        },
      })
      await test.send(['late', 'next'].map((value) => ({ topic, value })))
      await committed(group, topic, 2)
      expect(seen).toEqual(['late 1', 'late 2', 'next 1'])
      expect(worker.counts().parked).toBe(0)
    })
  })
})

function refuseUntil(isUp: () => boolean): typeof fetch {
  return (...args) => (isUp() ? fetch(...args) : Promise.reject(new TypeError('connection refused')))
}
