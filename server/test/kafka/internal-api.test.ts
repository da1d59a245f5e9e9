import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')

describe('the internal API', needs(kafka), () => {
  const prefix = `i${Date.now().toString(36)}.`
  let test: TestKafka
  let topic: string
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    topic = await test.createTopic(`${prefix}orders.dlq`, 2)
    await test.createTopic(`${prefix}orders`)
    const envelope = (partition: number, offset: number) => ({
      topic,
      partition,
      value: JSON.stringify({
        original_topic: `${prefix}orders`,
        original_partition: 0,
        original_offset: offset,
        original_key: 'deal_1',
        original_value: { amount: offset },
        consumer_group: 'payout',
        error_details: {
          exception_class: 'TonApiTimeoutException',
          message: 'timeout',
          stack_trace: 'x'.repeat(600),
        },
        retry_count: 5,
        worker_instance: 'payout-1',
        first_failure_at: '2026-11-18T10:00:00Z',
        last_failure_at: '2026-11-18T10:01:00Z',
      }),
    })
    await test.send([envelope(0, 10), envelope(0, 11), envelope(0, 12), envelope(1, 20)])
  })
  afterAll(() => test.close())

  const settings =
    kafka.missing === undefined ? kafkaSettings(kafka.brokers, { topics: [`${prefix}*.dlq`] }) : {}
  // SQLite: the Kafka driver works with every store.
  describeServer('with SQLite', 'SQLite file', settings, (server) => {
    const base = '/internal/v1/dlq'
    const list = (more = '') => server.request('GET', `${base}?topic=${topic}${more}`)

    it('the messages of a topic are listed in pages with the fields of their envelopes', async () => {
      const { body } = await pollUntil(
        () => list(),
        ({ status, body: page }) => status === 200 && page.messages.length === 4,
      )
      expect(body).toMatchObject({ nextCursor: null, hasNext: false })
      const message = body.messages.find((each: { reference: string }) => each.reference.endsWith('/0/0'))
      expect(message).toMatchObject({
        status: 'PENDING',
        queue: topic,
        reference: `test/${topic}/0/0`,
        original_topic: `${prefix}orders`,
        original_partition: 0,
        original_offset: '10',
        original_key: { text: 'deal_1' },
        original_value: { json: { amount: 10 } },
        consumer_group: 'payout',
        cluster: 'test',
        error_details: {
          exception_class: 'TonApiTimeoutException',
          message: 'timeout',
          stack_trace: 'x'.repeat(500),
        },
        worker_instance: 'payout-1',
        first_failure_at: '2026-11-18T10:00:00.000000Z',
      })
      const first = (await list('&limit=3')).body
      expect([first.messages.length, first.hasNext]).toEqual([3, true])
      const second = (await list(`&limit=3&cursor=${first.nextCursor}`)).body
      expect([second.messages.length, second.hasNext]).toEqual([1, false])
    })

    it('a message is found by its offset, and by its partition if the offset is not unique', async () => {
      const found = await server.call('GET', `${base}/${topic}/1`)
      expect(found.original_offset).toBe('11')
      const ambiguous = await server.request('GET', `${base}/${topic}/0`)
      expect(ambiguous.status).toBe(400)
      expect(ambiguous.headers.get('content-type')).toContain('application/problem+json')
      expect(ambiguous.body).toMatchObject({
        type: 'urn:redrive:error:VALIDATION_FAILED',
        status: 400,
        instance: `${base}/${topic}/0`,
        error_code: 'VALIDATION_FAILED',
        violations: [{ field: 'query.partition' }],
      })
      const precise = await server.call('GET', `${base}/${topic}/0?partition=1&cluster=test`)
      expect(precise.original_offset).toBe('20')
      const missing = await server.request('GET', `${base}/${topic}/99`)
      expect([missing.status, missing.body.error_code]).toEqual([404, 'ENTITY_NOT_FOUND'])
    })

    it('a discarded message is audited with its reason, and a second discard is refused', async () => {
      const path = `${base}/${topic}/0?partition=1&reason=test%20data`
      const { id, status } = await server.call('DELETE', path)
      expect(status).toBe('DISCARDED')
      const audit = await server.call('GET', `/api/v1/audit?target=${id}`)
      expect(audit.entries[0]).toMatchObject({ action: 'letter.discard', reason: 'test data' })
      const again = await server.request('DELETE', path)
      expect([again.status, again.body.error_code]).toEqual([409, 'INVALID_STATE_TRANSITION'])
    })

    it('a message is replayed by id or by place, once at a time, and replay-all sends the others', async () => {
      const one = await server.call('POST', `${base}/replay`, { topic, partition: 0, offset: 0 })
      expect(one).toMatchObject({ status: 'RETRYING', attempt: 1, queue: 'kafka.test.replay' })
      const again = await server.request('POST', `${base}/replay`, { id: one.id })
      expect([again.status, again.body.error_code]).toEqual([409, 'INVALID_STATE_TRANSITION'])
      for (const body of [{}, { id: one.id, topic }, { topic }, { id: one.id, mode: 'header', force: true }])
        expect((await server.request('POST', `${base}/replay`, body)).status).toBe(400)
      const all = await server.call('POST', `${base}/replay-all?topic=${topic}`)
      expect(all.count).toBe(2)
      await pollUntil(
        () => test.read(`${prefix}orders`),
        (records) => records.length === 3,
      )
      await test.commit('payout', `${prefix}orders`, [3])
      await pollUntil(
        () => server.call('GET', `/api/v1/campaigns/${all.campaign_id}`),
        ({ state, counts }) => state === 'done' && counts.resolved === 2,
      )
    })

    it('clusters, dead-letter topics, lag and the metric of the lag are shown', async () => {
      const { clusters } = await pollUntil(
        () => server.call('GET', '/api/v1/kafka'),
        (body) => body.clusters[0].topics[0]?.unread_count === 0 && body.clusters[0].groups.length > 0,
      )
      expect(clusters[0]).toMatchObject({ name: 'test', is_up: true, error: null })
      expect(clusters[0].topics).toMatchObject([
        {
          topic,
          queue: topic,
          partition_count: 2,
          record_count: 4,
          retention_ms: 604_800_000,
          is_losing_soon: false,
          partitions: [
            { partition: 0, earliest: 0, end: 3, position: 3 },
            { partition: 1, earliest: 0, end: 1, position: 1 },
          ],
        },
      ])
      await test.commit('payout', `${prefix}orders`, [1])
      await pollUntil(
        async () => (await fetch(`${server.url}/metrics`)).text(),
        (text) =>
          text.includes(`kafka_consumer_lag{group="payout",topic="${prefix}orders",cluster="test"} 2`),
      )
    })
  })
})
