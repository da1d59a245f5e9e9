import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { startTestServer } from '../http/test-server.ts'

describe('a queue reload', needsOf('PostgreSQL'), () => {
  it('a queue reload applies a policy that was changed on another server', async () => {
    const testStore = await createTestStore('PostgreSQL')
    const servers = [
      await startTestServer({}, testStore.target),
      await startTestServer({}, testStore.target),
    ] as const
    try {
      const [here, there] = [createClient({ url: servers[0].url }), createClient({ url: servers[1].url })]
      await here.createQueue({ name: 'jobs' })
      await here.produce('jobs', 'x')
      const { partition, items } = await here.lease('jobs', { clientId: 'c' })
      await there.updateQueue('jobs', { leaseTimeout: '10m' })
      await here.reloadQueue('jobs')
      const { leaseMsLeft } = await here.extend(
        'jobs',
        partition,
        items.map(({ id }) => id),
      )
      // The lease was one minute before the change, and is ten minutes after it.
      expect(leaseMsLeft).toBeGreaterThan(60_000)
      await expect(here.reloadQueue('nowhere')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    } finally {
      await Promise.all(servers.map((server) => server.stop(0)))
      await testStore.drop()
    }
  })
})
