import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startTestServer } from '../http/running.ts'
import { speaker } from '../queue-api/speak.ts'

const postgres = await requireService('postgres')

describe('a database that does not answer', needs(postgres), () => {
  it('has calls of a queue answered in time, to be repeated, and nothing is lost by that', async () => {
    const database = await createDatabase()
    const settings = { 'queue.store_timeout': 300 }
    const server = await startTestServer(settings, { kind: 'postgres', url: database.url })
    const { ask, call } = speaker(() => server.url, 'json')
    const place = { queue_name: 'q', request_timeout: '1m' }
    const timeouts = { lease_timeout: '10m', expire_timeout: '1h' }
    await call('queues.create', { queue_name: 'q', requested_partitions: 1, ...timeouts })
    await call('queue.produce', { ...place, items: [{ utf8: 'one' }, { utf8: 'two' }] })
    const { items } = await call('queue.lease', { ...place, client_id: 'w', batch_size: 1 })
    const ids = [items[0].id]

    const stuck = new pg.Client({ connectionString: database.url })
    await stuck.connect()
    await stuck.query('begin; lock table redrive.items in access exclusive mode')
    const answers = await Promise.all([
      ask('queue.produce', { ...place, items: [{ utf8: 'three' }] }),
      ask('queue.lease', { ...place, client_id: 'w', batch_size: 1 }),
      ask('queue.complete', { ...place, ids }),
      ask('storage/items.list', { queue_name: 'q' }),
    ])
    for (const { status, body } of answers) {
      expect([status, body.message]).toEqual([454, 'internal error, try your request again'])
    }
    await stuck.query('rollback')
    await stuck.end()

    // What was under way is done by now, or soon: the one that was leased is there for the next, as new.
    const listed = async () => (await call('storage/items.list', { queue_name: 'q' })).items
    await expect
      .poll(async () => (await listed())?.map((item: { attempts?: number }) => item.attempts ?? 0))
      .toEqual([0, 0])
    const { items: again } = await call('queue.lease', { ...place, client_id: 'w', batch_size: 9 })
    expect(again.map(({ bytes }: { bytes: string }) => atob(bytes))).toEqual(['two', 'three'])
  })
})
