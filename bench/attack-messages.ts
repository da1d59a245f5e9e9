/** Attacks on the APIs of webhooks and of workers on Kafka, which show whole messages. */
import { type Attack, capture, get, once, post, putForm } from './attack-client.ts'

const channel = '/channel/attacked'
const tokens = {
  'x-broker-channel-token': 'channel-token',
  'x-broker-consumer-token': 'consumer-token',
  'x-broker-producer-id': 'attacker',
  'x-broker-producer-token': 'producer-token',
}
/** JSON writes each of these bytes with six characters. */
const largeMessage = once(() => '\u0001'.repeat(15 * 2 ** 20))
const manyValues = `[${'{"a":1},'.repeat(380_000)}1]`

async function broadcast(url: string, count: number): Promise<void> {
  await putForm(`${url}/producer/attacker`, { token: 'producer-token' })
  await putForm(`${url}${channel}`, { token: 'channel-token' })
  const consumer = { token: 'consumer-token', callbackUrl: 'http://192.0.2.1/', type: 'pull' }
  await putForm(`${url}${channel}/consumer/puller`, consumer)
  for (let message = 0; message < count; message++) {
    const headers = { ...tokens, 'x-broker-message-id': `message-${message}` }
    const status = await post(`${url}${channel}/broadcast`, largeMessage(), headers)
    if (status !== '201') throw new Error(`the broadcast of a preparation was answered with ${status}`)
  }
}

export const messageAttacks: readonly Attack[] = [
  {
    name: 'broadcast of 15 MiB',
    prepare: (url) => broadcast(url, 0),
    run: (url) => post(`${url}${channel}/broadcast`, largeMessage(), tokens),
  },
  {
    name: 'message of a channel with 15 MiB of control characters',
    prepare: (url) => broadcast(url, 1),
    run: (url) => get(`${url}${channel}/message/message-0`),
  },
  {
    name: 'queued jobs with messages of 15 MiB',
    prepare: (url) => broadcast(url, 60),
    run: (url) => get(`${url}${channel}/consumer/puller/queued-jobs?limit=100`, tokens),
  },
  {
    name: 'letters of a dead-letter topic with large JSON',
    prepare: (url) => capture(url, 12, manyValues),
    run: (url) => get(`${url}/internal/v1/dlq?topic=attacked&limit=200`),
  },
  {
    name: 'letters of a dead-letter topic with 15 MB of text',
    prepare: (url) => capture(url, 12, '\u0001'.repeat(5_000_000)),
    run: (url) => get(`${url}/internal/v1/dlq?topic=attacked&limit=200`),
  },
]
