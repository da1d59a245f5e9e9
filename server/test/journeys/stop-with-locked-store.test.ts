import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startTestServer } from '../http/test-server.ts'

const postgres = await requireService('postgres')

describe('a stop', needs(postgres), () => {
  it('ends within its bound, though the database holds up what the server does by itself', async () => {
    const database = await createDatabase()
    const server = await startTestServer(
      { 'counts.reconcile_interval': 20 },
      { kind: 'postgres', url: database.url },
    )
    const holdUp = new pg.Client({ connectionString: database.url })
    await holdUp.connect()
    await holdUp.query('begin; lock table redrive.items in access exclusive mode')
    // Another connection: a transaction sees the list of sessions as it was when it first looked.
    const watch = new pg.Client({ connectionString: database.url })
    await watch.connect()
    const stuck = async () =>
      (
        await watch.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
      ).rowCount
    await expect.poll(stuck, { timeout: 10_000 }).toBeGreaterThan(0)
    const startedAt = performance.now()
    await server.stop(100)
    // The grace, and the five seconds that closing the store may take.
    expect(performance.now() - startedAt).toBeLessThan(9_000)
    await holdUp.query('rollback')
    await Promise.all([holdUp.end(), watch.end()])
  })
})
