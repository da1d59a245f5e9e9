import { describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { createLetters } from '../../src/letters/create-letters.ts'
import { createSystemClock } from '../../src/system-clock.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startServerProcess } from '../http/server-process.ts'
import { lettersFrom } from '../letters/test-system.ts'

const letterCount = 600

const clock = createSystemClock()

describe.each(['SQLite file', 'PostgreSQL'] as const)('a campaign whose servers are killed (%s)', (store) => {
  const name =
    'a campaign whose servers are killed ends on the next server and sends every letter exactly once'
  it(name, { ...needsOf(store), timeout: 120_000 }, async () => {
    const testStore = await createTestStore(store)
    try {
      const before = await testStore.open()
      const now = clock.now()
      await before.write([
        { op: 'create-queue', queue: { name: 'dead' }, now },
        { op: 'create-queue', queue: { name: 'jobs', deadQueue: 'dead', leaseTimeoutUs: 3_000_000 }, now },
      ])
      const toCapture = lettersFrom('jobs', letterCount).map((letter) => ({ ...letter, deadLetteredAt: now }))
      const captured = await createLetters({ storage: before, engine: before, clock }).capture(
        'dead',
        toCapture,
      )
      await before.close()

      let server = await startServerProcess(testStore.target)
      const { id } = await createClient({ url: server.url }).createCampaign({
        action: 'redrive',
        filter: { queue: 'dead' },
        name: 'after the fix',
        reason: 'release 7',
        canary_count: 10,
        rate_per_second: 200,
      })
      const processed = new Set<string>()
      for (const share of [0.1, 0.4, 1]) {
        const client = createClient({ url: server.url })
        const take = async ({ payload }: { payload: Uint8Array }) => processed.add(payload.toString())
        const worker = client.work('jobs', take, { concurrency: 100, onError: () => {} })
        const reached = await pollUntil(
          () => client.getCampaign(id),
          ({ counts, state }) =>
            state === 'done' || (share < 1 && counts.sent + counts.resolved >= share * letterCount),
          60_000,
        )
        expect(reached.state).toBe(share < 1 ? 'running' : 'done')
        if (share === 1)
          expect(reached.counts).toMatchObject({ resolved: letterCount, failed: 0, unknown: 0, skipped: 0 })
        await server.kill()
        // The worker cannot report the items in progress. They are leased again when their leases have ended.
        await worker.stop({ withinMs: 200 }).catch(() => undefined)
        if (share < 1) server = await startServerProcess(testStore.target)
      }
      expect(processed.size).toBe(letterCount)

      const after = await testStore.open()
      expect(await after.verify()).toEqual([])
      const letters = await after.getLetters(captured.map(({ letterId }) => letterId))
      expect(
        letters.filter(({ state, letter }) => state === 'done' && letter?.requeueCount === 1),
      ).toHaveLength(letterCount)
    } finally {
      await testStore.drop()
    }
  })
})
