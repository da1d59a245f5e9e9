/**
 * Runs a server until its disk is full, reports which calls still work, and what health reports; then again
 * when there is space.
 */
import { rm } from 'node:fs/promises'
import { readSettings } from '../../../src/config/settings/read-settings.ts'
import { settingsTable } from '../../../src/config/settings/settings.ts'
import { createLogger } from '../../../src/ops/log/log.ts'
import { startServer } from '../../../src/server.ts'
import { readTask, report } from './parent-channel.ts'

const { target, ballast } = readTask<{ ballast: string }>()
const settings = { ...readSettings(settingsTable, []).settings, port: 0 }
const log = createLogger({ level: 'error', isPretty: false, destination: { write: () => {} } })
const server = await startServer({ settings, store: target, log })

type Answer = Readonly<{ status: number; message: string; body: Record<string, unknown> }>
async function send(method: string, path: string, body?: object): Promise<Answer> {
  const answer = await fetch(server.url + path, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const json = (await answer.json()) as Record<string, unknown>
  return { status: answer.status, message: String(json.message ?? ''), body: json }
}
const sendQueue = (name: string, body: object) => send('POST', `/v1/${name}`, body)
async function waitForHealth(status: number): Promise<void> {
  while ((await send('GET', '/health')).status !== status) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const queue = { queue_name: 'work', requested_partitions: 1, lease_timeout: '1h', expire_timeout: '2h' }
await sendQueue('queues.create', queue)
await send('POST', '/api/v1/queues', { name: 'dead' })
const letters = [{ original_queue: 'work', original_value: 'x' }]
await send('POST', '/api/v1/letters', { queue: 'dead', letters })
const listed = await send('GET', '/api/v1/letters')
const [letter] = (listed.body.letters ?? listed.body.data) as { id: string }[]
const call = { queue_name: 'work', request_timeout: '10s' }
const filler = Buffer.from(crypto.getRandomValues(new Uint8Array(32 * 1024))).toString('base64')
const produce = () => sendQueue('queue.produce', { ...call, items: [{ bytes: filler }, { bytes: filler }] })
await produce()
const leased = await sendQueue('queue.lease', { ...call, client_id: 'w', batch_size: 2 })
const [first, second] = (leased.body.items as { id: string }[]).map(({ id }) => id)

let refused = await produce()
while (refused.status === 200) refused = await produce()
report('refused', { status: refused.status, message: refused.message })
await waitForHealth(503)
report('health', {
  output: JSON.stringify((await send('GET', '/health')).body),
  ready: (await send('GET', '/readyz')).status,
})
report('works', {
  complete: (await sendQueue('queue.complete', { ...call, partition: 0, ids: [first] })).status,
  delete: (await sendQueue('storage/items.delete', { queue_name: 'work', partition: 0, ids: [second] }))
    .status,
  discard: (await send('POST', '/api/v1/letters/discard', { ids: [letter?.id], reason: 'test' })).status,
  produce: (await produce()).status,
})
await rm(ballast)
await waitForHealth(200)
report('recovered', { produce: (await produce()).status, ready: (await send('GET', '/readyz')).status })
await server.stop(0)
process.exit(0)
