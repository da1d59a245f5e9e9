import { afterEach, expect, it } from 'vitest'
import { createEngine } from '../../src/engine/create-engine.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { startTestApi } from '../http/test-api.ts'
import { bytes, noon } from '../make.ts'
import { createQueueClient } from './queue-client.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

it('the X-Redrive-Error header becomes the failure of the dead letter', async () => {
  const clock = { now: () => noon }
  const storage = await openStorage({ kind: 'memory' }, { clock })
  const engine = createEngine(storage, { clock, isTicking: false })
  ends.push(async () => {
    await engine.close()
    await storage.close()
  })
  await engine.createQueue({ name: 'dead' })
  await engine.createQueue({ name: 'orders', deadQueue: 'dead' })
  await engine.produce('orders', [{ payload: bytes('one') }, { payload: bytes('two') }])
  const { items } = await engine.lease('orders', { clientId: 'worker-1', countMax: 2, timeoutMs: 1_000 })
  const { url } = await startTestApi({ engine: () => engine, clock })
  const api = createQueueClient(() => url, 'protobuf')

  const given = { error_class: 'CardRefused', message: 'no € left', stack: 'at pay', error_code: 'refused' }
  // Raw UTF-8, as many programs write it.
  const header = Buffer.from(JSON.stringify(given)).toString('latin1')
  const retried = items.map(({ id }) => ({ id, dead: true }))
  await api.call(
    'queue.retry',
    { queue_name: 'orders', items: retried },
    { headers: { 'x-redrive-error': header } },
  )
  const letters = await storage.listItems({ queue: 'dead', countMax: 10 })
  expect(letters.map(({ failure }) => failure)).toEqual(
    items.map(() => ({
      errorCode: 'refused',
      errorClass: 'CardRefused',
      message: 'no € left',
      stack: 'at pay',
      attempts: 1,
      firstFailedAt: noon,
      lastFailedAt: noon,
      worker: 'worker-1',
    })),
  )
})
