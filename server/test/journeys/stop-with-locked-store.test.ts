import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startTestServer } from '../http/test-server.ts'

const postgres = await requireService('postgres')

describe('a stop with a locked store', needs(postgres), () => {
  it('a stop ends although a lock in the database blocks the background work of the server', async () => {
    const database = await createDatabase()
    const server = await startTestServer(
      { 'counts.reconcile_interval': 20 },
      { kind: 'postgres', url: database.url },
    )
    const lockHolder = new pg.Client({ connectionString: database.url })
    await lockHolder.connect()
    await lockHolder.query('begin; lock table redrive.items in access exclusive mode')
    // Uses another connection, because a transaction keeps seeing the sessions that it saw first.
    const observer = new pg.Client({ connectionString: database.url })
    await observer.connect()
    const countBlockedSessions = async () =>
      (
        await observer.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
      ).rowCount
    await expect.poll(countBlockedSessions, { timeout: 10_000 }).toBeGreaterThan(0)
    // The lock is still held, so that a stop that waits for the blocked work would never return.
    await server.stop(100)
    await lockHolder.query('rollback')
    await Promise.all([lockHolder.end(), observer.end()])
  })
})
