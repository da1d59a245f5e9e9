import { Consumer } from '@platformatic/kafka'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from './test-kafka.ts'

const kafka = await requireService('kafka')
const hourMs = 3_600_000

describe('the retention of a dead-letter topic', needs(kafka), () => {
  const prefix = `k${Date.now().toString(36)}.`
  const [young, old] = [`${prefix}young.dlq`, `${prefix}old.dlq`]
  const group = `redrive-${prefix}`
  let test: TestKafka
  let stranger: Consumer
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    for (const topic of [young, old]) await test.createTopic(topic, 2, { 'retention.ms': String(hourMs) })
    // A program that joins the group of the bridge takes partitions away from it.
    stranger = new Consumer({ clientId: 'stranger', bootstrapBrokers: [...kafka.brokers], groupId: group })
    stranger.topics.trackAll(young, old)
    await stranger.joinGroup({})
  })
  afterAll(async () => {
    await stranger.close(true)
    await test.close()
  })

  const settings =
    kafka.missing === undefined
      ? { ...kafkaSettings(kafka.brokers, { topics: [`${prefix}*`], group }), 'workers.check_interval': 200 }
      : {}
  describeServer('with SQLite', 'SQLite file', settings, (server) => {
    const readTopic = async (name: string): Promise<Body> => {
      const { clusters } = await server.call('GET', '/api/v1/kafka')
      return clusters[0].topics.find(({ topic }: Body) => topic === name)
    }
    const readFindings = async (): Promise<Body[]> =>
      (await server.call('GET', '/api/v1/workers/findings')).findings.filter(
        ({ rule }: Body) => rule === 'kafka-retention',
      )
    const warnings = () =>
      server.lines.filter(({ msg }) => String(msg).startsWith('UNREAD RECORDS ARE CLOSE'))

    it('a server warns of unread records that Kafka removes soon, until they are read', {
      timeout: 90_000,
    }, async () => {
      const send = (topic: string, ageMs: number) =>
        test.send(
          [0, 1].map((partition) => ({ topic, partition, value: 'x', timestampMs: Date.now() - ageMs })),
        )
      await send(young, 0.5 * hourMs)
      await send(old, 0.9 * hourMs)
      const losing = await pollUntil(
        () => readTopic(old),
        (found) => found?.is_losing_soon === true,
        60_000,
      )
      expect(losing.retention_ms).toBe(hourMs)
      const [finding, other] = await pollUntil(readFindings, (found) => found.length > 0)
      expect(finding).toMatchObject({ severity: 'WARNING', subject: `test/${old}` })
      expect(other).toBeUndefined()
      const unread = await pollUntil(
        () => readTopic(young),
        (found) => found.unread_count > 0,
      )
      expect(unread.is_losing_soon).toBe(false)
      await stranger.leaveGroup()
      await pollUntil(
        () => readTopic(old),
        (found) => found.unread_count === 0 && !found.is_losing_soon,
        60_000,
      )
      await pollUntil(readFindings, (found) => found.length === 0)
      // Once for an incident, not at each reading.
      expect(warnings()).toHaveLength(1)
    })
  })
})
