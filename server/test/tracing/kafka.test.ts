/** A trace comes in with a Kafka record, is found in its letter, and goes out with the redrive. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startOtlpReceiver } from '../http/otlp-receiver.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from '../kafka/test-kafka.ts'

const kafka = await requireService('kafka')
const collector = await startOtlpReceiver()
afterAll(() => collector.close())

describe('traces through Kafka', needs(kafka), () => {
  let test: TestKafka
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
  })
  afterAll(() => test.close())
  const source = `traced${Date.now().toString(36)}`
  const settings =
    kafka.missing === undefined
      ? {
          ...kafkaSettings(kafka.brokers, { topics: [`${source}.dlq`] }),
          'tracing.otlp_endpoint': collector.url,
          'tracing.export_interval': 20,
        }
      : {}
  for (const store of ['SQLite file', 'PostgreSQL'] as const)
    describeServer(`with ${store}`, store, settings, (server) => {
      it('the traceparent of a record is shown and found in its letter, and is a header of the redriven record', async () => {
        const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
        const traceparent = `00-${traceId}-${spanId}-01`
        // Both stores read the same topics.
        if (store === 'SQLite file') {
          await test.createTopic(source)
          await test.createTopic(`${source}.dlq`)
          const headers = [
            ['traceparent', traceparent],
            ['tracestate', 'vendor=1'],
            ['original_topic', source],
            ['kafka_dlt-original-consumer-group', 'billing'],
          ] as const
          await test.send([{ topic: `${source}.dlq`, value: 'x', headers }])
        }
        const find = () => server.request('GET', `/api/v1/letters?trace_id=${traceId}`)
        const { body } = await pollUntil(find, ({ body: page }) => page.letters?.length === 1)
        const [letter] = body.letters
        expect(letter).toMatchObject({ trace_id: traceId, status: 'PENDING' })
        const ingest = await collector.waitFor(`ingest ${source}.dlq`)
        expect(ingest).toMatchObject({ kind: 3, links: [{ traceId, spanId }] })
        expect(ingest.attributes).toMatchObject({ 'messaging.system': 'kafka' })

        const before = (await test.read(source)).length
        await server.call('POST', '/api/v1/letters/redrive', { ids: [letter.id], reason: 'fixed' })
        const records = await pollUntil(
          () => test.read(source),
          (found) => found.length > before,
        )
        const headers = records.at(-1)?.headers.map(([name, value]) => [name, String(value)])
        expect(headers).toContainEqual(['traceparent', traceparent])
        expect(headers).toContainEqual(['tracestate', 'vendor=1'])
        const replay = await collector.waitFor(`replay ${source}`)
        expect(replay).toMatchObject({ kind: 4, links: [{ traceId, spanId }] })
      })
    })
})
