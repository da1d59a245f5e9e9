/**
 * A PostgreSQL server whose processes are all stopped, as on a machine that hangs: its connections stay open,
 * new ones are accepted by the kernel, and nothing answers.
 */
import { afterAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { requirement } from '../conformance/support/machine-requirements.ts'
import { pollUntil } from '../http/poll-until.ts'
import { findPostgresProcesses, signalAll } from '../http/postgres-processes.ts'
import { startTestServer } from '../http/test-server.ts'
import { createQueueClient } from '../queue-api/queue-client.ts'

const postgres = await requireService('privatePostgres')
const linux = requirement('/proc', process.platform === 'linux' ? undefined : 'only Linux has it')

const timeout = 60_000
const target = { queue_name: 'q', request_timeout: '20s' }

async function readProbes(url: string) {
  const [health, ready] = await Promise.all([fetch(`${url}/health`), fetch(`${url}/readyz`)])
  return { health: health.status, ready: ready.status, text: await health.text() }
}

describe('a PostgreSQL server that hangs', needs(postgres, linux), () => {
  let stopped: readonly number[] = []
  afterAll(async () => {
    signalAll(stopped, 'SIGCONT')
    await postgres?.end()
  })

  it('health reports it, no answer claims more than is known, and nothing that was acknowledged is lost', {
    timeout,
  }, async () => {
    if (postgres === undefined) throw new Error('this test is skipped then')
    const settings = { 'store.retry_backoff_max': 200, 'postgres.connect_timeout': 2_000 } as const
    const { url } = await startTestServer(settings, { kind: 'postgres', url: postgres.url })
    const { call, send } = createQueueClient(() => url, 'json')
    const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
    await call('queues.create', { queue_name: 'q', requested_partitions: 1, ...timeouts })
    const produce = (name: string) => send('queue.produce', { ...target, items: [{ utf8: name }] })
    const acknowledged: string[] = []
    const sent = ['before', 'while it hangs', 'while it is down', 'after']
    if ((await produce('before')).status === 200) acknowledged.push('before')

    stopped = await findPostgresProcesses(postgres.url)
    signalAll(stopped, 'SIGSTOP')
    const hanging = produce('while it hangs')
    const lease = send('queue.lease', { ...target, client_id: 'w', batch_size: 1, request_timeout: '4s' })
    const down = await pollUntil(
      () => readProbes(url),
      ({ health }) => health === 503,
      timeout,
    )
    expect(down).toMatchObject({ health: 503, ready: 503 })
    expect(down.text).toMatch(/cannot reach the store|did not answer/)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    const unknown = await hanging
    expect([unknown.status, unknown.body.message]).toEqual([454, expect.stringContaining('unknown')])
    const leased = await lease
    expect(leased.status).toBe(454)
    expect(leased.body.message).not.toContain('no items are in the queue')
    expect((await produce('while it is down')).status).toBe(454)

    signalAll(stopped, 'SIGCONT')
    await pollUntil(
      () => readProbes(url),
      ({ health, ready }) => health === 200 && ready === 200,
      timeout,
    )
    await pollUntil(
      () => produce('after'),
      ({ status }) => status === 200,
      timeout,
    )
    acknowledged.push('after')
    const { items = [] } = await call('storage/items.list', { queue_name: 'q', limit: 100 })
    const names = items.map(({ payload }: { payload: string }) => Buffer.from(payload, 'base64').toString())
    expect(names).toEqual(expect.arrayContaining(acknowledged))
    expect(sent).toEqual(expect.arrayContaining(names))
  })
})
