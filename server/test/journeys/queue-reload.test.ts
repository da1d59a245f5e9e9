import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { startTestServer } from '../http/test-server.ts'

describe('a reload', needsOf('PostgreSQL'), () => {
  it('makes what was changed at another server hold here at once', async () => {
    const place = await createTestStore('PostgreSQL')
    const servers = [
      await startTestServer({}, place.target),
      await startTestServer({}, place.target),
    ] as const
    try {
      const [here, there] = [createClient({ url: servers[0].url }), createClient({ url: servers[1].url })]
      await here.createQueue({ name: 'jobs', lease: '1m', expire: '24h' })
      await here.produce('jobs', 'x')
      const { partition, items } = await here.lease('jobs', { clientId: 'c' })
      await there.changePolicy('jobs', { lease: '10m' })
      await here.reloadQueue('jobs')
      const { leaseMsLeft } = await here.extend(
        'jobs',
        partition,
        items.map(({ id }) => id),
      )
      expect(leaseMsLeft).toBeGreaterThan(500_000)
      await expect(here.reloadQueue('nowhere')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    } finally {
      await Promise.all(servers.map((server) => server.stop(0)))
      await place.drop()
    }
  })
})
