import { connect, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { parseKafkaClusters } from '../../src/config/kafka-clusters.ts'
import { createAuthority } from '../certificates.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer } from '../http/store-server.ts'
import { kafkaSettings, openTestKafka, type TestKafka } from './test-kafka.ts'

const authority = createAuthority('Kafka test authority')
const { certificate, key } = authority.issue({ name: 'broker', hosts: ['127.0.0.1', 'localhost'] })
const [user, password] = ['redrive', 'pa55-word']
const kafka = await requireService('privateKafka', { secured: { user, password, certificate, key } })

/** Passes connections on to a broker, after it has reset the first ones in the middle of the login. */
async function startResetting(broker: string, resetMax: number): Promise<Server> {
  const [host, port] = broker.split(':')
  let resets = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    if (resets < resetMax) {
      resets++
      socket.once('data', () => socket.resetAndDestroy())
      return
    }
    const onward = connect(Number(port), host)
    onward.on('error', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
const resetting = kafka.missing === undefined ? await startResetting(kafka.sasl[0] ?? '', 4) : undefined
const addressOf = (server: Server | undefined): string => {
  const address = server?.address()
  return typeof address === 'object' && address !== null ? `127.0.0.1:${address.port}` : ''
}
const uncaught: unknown[] = []
const onUncaught = (error: unknown) => void uncaught.push(error)
process.on('uncaughtExceptionMonitor', onUncaught)

describe('a Kafka broker', needs(kafka), () => {
  const topic = 'orders.dlq'
  let test: TestKafka
  beforeAll(async () => {
    test = openTestKafka(kafka.brokers)
    await test.createTopic(topic)
    await test.createTopic('orders')
    await test.send([{ topic, value: 'first', headers: [['original_topic', 'orders']] }])
  })
  afterAll(async () => {
    await test.close()
    process.off('uncaughtExceptionMonitor', onUncaught)
    resetting?.close()
    await kafka.end()
  })

  const sasl = (mechanism: string, secret = password) => ({
    brokers: [...kafka.sasl],
    sasl: { mechanism, username: user, password: secret },
  })
  const clusters =
    kafka.missing === undefined
      ? {
          open: { brokers: [...kafka.brokers] },
          plain: sasl('PLAIN'),
          scram: sasl('scram-sha-512'),
          older: sasl('scram-sha-256'),
          tls: { brokers: [...kafka.tls], tls: { ca: authority.certificate } },
          both: {
            ...sasl('scram-sha-512'),
            brokers: [...kafka.saslTls],
            tls: { ca: authority.certificate },
          },
          reset: { ...sasl('PLAIN'), brokers: [addressOf(resetting)] },
          wrong: sasl('scram-sha-512', 'wrong'),
          untrusted: { brokers: [...kafka.tls], tls: true },
        }
      : {}
  const named = Object.fromEntries(
    Object.entries(clusters).map(([name, each]) => [
      name,
      { ...each, group: `redrive-${name}`, session_timeout: '6s', queue: '{cluster}.{topic}' },
    ]),
  )
  const settings = {
    ...kafkaSettings(['127.0.0.1:1']),
    'kafka.clusters': parseKafkaClusters(JSON.stringify(named)),
    'kafka.retry_backoff_max': 500,
  }
  describeServer('with SQLite', 'SQLite file', settings, (server) => {
    const payloadsOf = (cluster: string, count: number) =>
      pollUntil(
        () => server.request('GET', `/api/v1/letters?queue=${cluster}.${topic}`),
        ({ status, body }) => status === 200 && body.letters.length >= count,
        60_000,
      ).then(({ body }) =>
        body.letters.map((letter: { payload: { text: string } }) => letter.payload.text).toSorted(),
      )
    const healthOf = async (cluster: string) => {
      const { body } = await server.request('GET', '/health')
      return body.checks[`kafka:${cluster}`]?.[0]
    }

    it.each(['open', 'plain', 'scram', 'older', 'tls', 'both', 'reset'])(
      'records are read from the cluster "%s"',
      async (cluster) => {
        expect(await payloadsOf(cluster, 1)).toEqual(['first'])
        expect(await healthOf(cluster)).toMatchObject({ status: 'pass' })
      },
    )

    it('a wrong password and an untrusted certificate are reported with their reason, without the password', async () => {
      const wrong = await pollUntil(
        () => healthOf('wrong'),
        (check) => check?.status === 'warn',
      )
      expect(wrong.output).toMatch(/login was refused/)
      expect(wrong.output).not.toMatch(/wrong|pa55/)
      const untrusted = await pollUntil(
        () => healthOf('untrusted'),
        (check) => check?.status === 'warn',
      )
      expect(untrusted.output).toMatch(/certificate|self.signed|issuer/i)
      const shown = await Promise.all(
        ['/api/v1/kafka', '/health', '/metrics'].map(async (path) => (await fetch(server.url + path)).text()),
      )
      expect([...shown, JSON.stringify(server.lines)].join()).not.toContain(password)
    })

    it('connections that are reset during a login do not end the process', () => {
      expect(uncaught).toEqual([])
    })

    it('a broker that is stopped and started again loses nothing, and redrives wait for it', {
      timeout: 120_000,
    }, async () => {
      const { body } = await server.request('GET', `/api/v1/letters?queue=open.${topic}`)
      await kafka.stop()
      const down = await pollUntil(
        () => healthOf('open'),
        (check) => check?.status === 'warn',
        60_000,
      )
      expect(down.output).toMatch(/\w+/)
      // The server cannot ask Kafka which groups read the topic, so it accepts only a target that does not
      // need the answer.
      const ids = [body.letters[0].id]
      const refused = await server.request('POST', '/api/v1/letters/redrive', { ids, reason: 'x' })
      expect([refused.status, refused.body.error.code]).toEqual([503, 'KAFKA_UNAVAILABLE'])
      await server.call('POST', '/api/v1/letters/redrive', {
        ids,
        reason: 'x',
        target: 'kafka.open.replay-forced',
      })
      await kafka.start()
      await pollUntil(
        () => test.send([{ topic, value: 'second' }]).catch(() => null),
        (sent) => sent !== null,
        60_000,
      )
      expect(await payloadsOf('open', 2)).toEqual(['first', 'second'])
      await pollUntil(
        () => healthOf('open'),
        (check) => check?.status === 'pass',
        60_000,
      )
      const sent = await pollUntil(
        () => test.read('orders').catch(() => []),
        (records) => records.length > 0,
        60_000,
      )
      expect(sent.map(({ value }) => String(value))).toEqual(['first'])
      expect(uncaught).toEqual([])
    })
  })
})
