import { randomUUID } from 'node:crypto'
import { Admin, Consumer, MessagesStreamModes, Producer } from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { getServiceSource } from './index.ts'
import { needs, requireService } from './require-service.ts'

const kafka = await requireService('kafka')

describe('the shared Kafka', needs(kafka), () => {
  it('a Kafka started by the test run reports a 4.x version', async () => {
    const record = (await getServiceSource().records()).find(({ service }) => service === 'kafka')
    // A configured Kafka has no version here: the protocol has no request for it.
    if (record?.isFound && record.origin === 'started') expect(record.version).toMatch(/^4\.\d+\.\d+$/)
  })

  it('Kafka returns the key, headers and bytes of records unchanged', async () => {
    const topic = `redrive-test-${randomUUID()}`
    const connection = { clientId: 'redrive-test', bootstrapBrokers: [...kafka.brokers] }
    const admin = new Admin(connection)
    await using _admin = { [Symbol.asyncDispose]: () => admin.close() }
    const producer = new Producer(connection)
    await using _producer = { [Symbol.asyncDispose]: () => producer.close() }
    const consumer = new Consumer({ ...connection, groupId: topic })
    await using _consumer = { [Symbol.asyncDispose]: () => consumer.close(true) }
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 })

    const sent = [0, 1, 2].map((n) => ({
      key: Buffer.from([0, 255, n]),
      value: Buffer.from([n, 0, 128, 255, 10]),
      headers: new Map([[Buffer.from('trace'), Buffer.from([n, 254])]]),
    }))
    await producer.send({ messages: sent.map((each) => ({ topic, ...each })), acks: -1 })

    const stream = await consumer.consume({
      topics: [topic],
      mode: MessagesStreamModes.EARLIEST,
      autocommit: false,
    })
    const received: { key: Buffer; value: Buffer; headers: Map<Buffer, Buffer> }[] = []
    for await (const { key, value, headers } of stream) {
      received.push({ key, value, headers })
      if (received.length === sent.length) break
    }
    expect(received).toEqual(sent)
  })
})
