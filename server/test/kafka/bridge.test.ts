import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')

describe('the Kafka bridge', needs(kafka), () => {
  const prefix = `b${Date.now().toString(36)}.`
  let test: TestKafka
  beforeAll(() => {
    test = openTestKafka(kafka.brokers)
  })
  afterAll(() => test.close())

  const settings =
    kafka.missing === undefined
      ? kafkaSettings(kafka.brokers, {
          topics: [`${prefix}*.dlq`],
          classes: { [`${prefix}escrow.*`]: 'financial' },
        })
      : {}
  describeServer('with PostgreSQL', 'PostgreSQL', settings, (server) => {
    const lettersOf = async (queue: string, count: number) => {
      const page = await pollUntil(
        () => server.request('GET', `/api/v1/letters?queue=${queue}&limit=500`),
        ({ body }) => body.letters?.length >= count,
      )
      return page.body.letters
    }
    it('each record of a dead-letter topic becomes one letter of a queue with the name of the topic', async () => {
      const topic = await test.createTopic(`${prefix}orders.dlq`, 3)
      await test.send(
        [0, 1, 2].flatMap((partition) =>
          Array.from({ length: 20 }, (_, n) => ({
            topic,
            partition,
            key: `k${n}`,
            value: `value ${partition}/${n}`,
          })),
        ),
      )
      const letters = await lettersOf(topic, 60)
      expect(letters).toHaveLength(60)
    })
  })
})
