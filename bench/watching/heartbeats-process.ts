/** Workers in a process of their own: `<redis|http> <url> <count>`. Each reports every 10 s. */
import { createClient } from '@redis/client'

const [kind = '', url = '', count = ''] = process.argv.slice(2)
const perStep = 100
const workers = Number(count)
const stepMs = (10_000 * perStep) / workers

const createHeartbeat = () => ({
  timestamp: new Date().toISOString(),
  status: 'RUNNING',
  last_message_at: new Date().toISOString(),
  consumer_lag: 3,
})

const sendToRedis = async () => {
  const client = createClient({ url })
  await client.connect()
  return async (from: number) => {
    const pipeline = client.multi()
    const expiration = { type: 'EX', value: 30 } as const
    for (let at = from; at < from + perStep; at++)
      pipeline.set(`worker:type-${at % 20}:host-${at}`, JSON.stringify(createHeartbeat()), { expiration })
    await pipeline.exec()
  }
}

const sendOverHttp = async () => async (from: number) => {
  const heartbeats = Array.from({ length: perStep }, (_, at) => ({
    type: `type-${(from + at) % 20}`,
    instance_id: `host-${from + at}`,
    ...createHeartbeat(),
  }))
  const response = await fetch(`${url}/api/v1/workers/heartbeat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ heartbeats }),
  })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  await response.body?.cancel()
}

const send = await (kind === 'redis' ? sendToRedis() : sendOverHttp())
for (let from = 0; from < workers; from += perStep) await send(from)
process.send?.('all workers reported')
let next = 0
setInterval(() => {
  void send(next)
  next = (next + perStep) % workers
}, stepMs)
