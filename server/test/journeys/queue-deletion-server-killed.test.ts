import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startServerProcess } from '../http/server-process.ts'

describe.each(['SQLite file', 'PostgreSQL'] as const)(
  'a forced deletion of a queue whose server is killed (%s)',
  (store) => {
    const name = 'the next server finishes the deletion of a queue, and no call has to be repeated'
    it(name, { ...needsOf(store), timeout: 120_000 }, async () => {
      const testStore = await createTestStore(store)
      try {
        const items = Array.from({ length: 60_000 }, (_, at) => ({ payload: '', sourceId: `source-${at}` }))
        const first = await startServerProcess(testStore.target)
        const client = createClient({ url: first.url, retriesMax: 0 })
        await client.createQueue({ name: 'jobs' })
        await client.importItems('jobs', 0, items, { answerMsMax: 60_000 })
        const count = async () => (await client.getQueue('jobs')).counts.waiting
        const deleted = fetch(`${first.url}/api/v1/queues/jobs?force=true`, { method: 'DELETE' }).then(
          ({ status }) => status,
          () => 'cut',
        )
        await pollUntil(count, (waiting) => waiting < items.length)
        await first.kill()
        expect(await deleted).toBe('cut')

        // The pass of the next server waits until the deletion made no progress for 15 s.
        const second = await startServerProcess(testStore.target)
        const again = createClient({ url: second.url })
        const listNames = async () => (await again.listQueues()).queues.map((queue) => queue.name)
        expect(await listNames()).toEqual(['jobs'])
        await pollUntil(listNames, (names) => names.length === 0, 60_000)
        await second.kill()

        const opened = await testStore.open()
        expect(await opened.verify()).toEqual([])
        expect(await opened.listQueueDeletions(10)).toEqual([])
      } finally {
        await testStore.drop()
      }
    })
  },
)
