import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startServerProcess } from '../http/server-process.ts'

describe.each(['SQLite file', 'PostgreSQL'] as const)(
  'a large import whose server is killed (%s)',
  (store) => {
    const name =
      'an import whose server is killed keeps its first items, and a repeated import adds the missing items'
    it(name, { ...needsOf(store), timeout: 120_000 }, async () => {
      const testStore = await createTestStore(store)
      try {
        const texts = Array.from({ length: 30_000 }, (_, index) => String(index))
        const items = texts.map((text) => ({ payload: text, sourceId: `source-${text}` }))
        const first = await startServerProcess(testStore.target)
        const client = createClient({ url: first.url })
        await client.createQueue({ name: 'jobs' })
        const cut = expect(client.importItems('jobs', 0, items)).rejects.toMatchObject({
          isOutcomeUnknown: true,
        })
        await pollUntil(
          async () => (await client.getQueue('jobs')).counts.waiting,
          (waiting) => waiting > 0,
        )
        await first.kill()
        await cut

        const second = await startServerProcess(testStore.target)
        const again = createClient({ url: second.url })
        const stored = (await again.getQueue('jobs')).counts.waiting
        expect(stored).toBeLessThan(texts.length)
        expect(stored % 1_000).toBe(0)
        const imported = await again.importItems('jobs', 0, items, { answerMsMax: 60_000 })
        expect(imported.findIndex(({ id }) => id !== '')).toBe(stored)
        expect(imported.filter(({ id }) => id === '')).toHaveLength(stored)
        expect((await again.getQueue('jobs')).counts).toMatchObject({
          waiting: texts.length,
          accepted: texts.length,
        })
        await second.kill()

        const opened = await testStore.open()
        expect(await opened.verify()).toEqual([])
        const kept: string[] = []
        for (let id = ''; ; ) {
          const page = await opened.listItems({
            queue: 'jobs',
            from: { id, isIncluded: false },
            countMax: 5_000,
          })
          kept.push(...page.map(({ payload }) => Buffer.from(payload).toString()))
          if (page.length === 0) break
          id = page.at(-1)?.id ?? ''
        }
        expect(kept).toEqual(texts)
      } finally {
        await testStore.drop()
      }
    })
  },
)
