import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon } from '../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../test/postgres.ts'
import type { Storage } from '../contract/storage.ts'

const postgres = await requireService('postgres')

/** Those of our connections that wait for somebody. */
async function waiting(database: TestDatabase): Promise<unknown[]> {
  return database.rows(`select from pg_stat_activity
    where application_name = 'redrive' and wait_event_type = 'Lock' and datname = current_database()`)
}

/**
 * Somebody changes a row (extends its lease) and has not committed yet when the command comes. The
 * command waits for the row, and must then take it as it has become, not as it was nor for gone.
 */
describe('an item that is being changed while a command waits for it', needs(postgres), () => {
  it.each(['complete', 'retry', 'delete', 'clear', 'extend'] as const)(
    'is still there for %s',
    async (op) => {
      await using database = await testDatabase()
      const storage = await database.open()
      const at = { queue: 'orders', partition: 0 } as const
      await run(storage, { op: 'create-queue', queue: { name: 'orders' }, now: noon })
      const { ids } = await run(storage, { op: 'produce', ...at, items: newItems(1), now: noon })
      await run(storage, { op: 'lease', ...at, holders: ['w'], now: noon })
      const other = await database.connect()
      await other.query('begin')
      await other.query(
        `update redrive.items_live set lease_deadline = lease_deadline, updated_at = updated_at + 1`,
      )

      const [id = ''] = ids
      const items = [{ id, availableAt: null, isDead: false, error: null }]
      const states = { isWaiting: false, isScheduled: false, isLeased: true }
      const commands = {
        complete: { op: 'complete', ...at, ids, now: noon + minute },
        retry: { op: 'retry', ...at, items, now: noon + minute },
        extend: { op: 'extend', ...at, ids, deadline: noon + hour, now: noon + minute },
        delete: { op: 'delete', ...at, ids },
        clear: { op: 'clear', queue: 'orders', ...states, countMax: 10 },
      } as const
      const done = run(storage, commands[op])
      await expect.poll(() => waiting(database)).toHaveLength(1)
      await other.query('commit')
      expect(await done).toMatchObject(
        op === 'delete' || op === 'clear' ? { removed: 1 } : { isSettled: true },
      )
      expect(await storage.verify()).toEqual([])
    },
  )
})

describe('a queue that is given a dead queue while a letter comes into it', needs(postgres), () => {
  it('takes no letter: it was looked at before, and is looked at again', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    for (const name of ['dead', 'orders'])
      await run(storage, { op: 'create-queue', queue: { name }, now: noon })
    const other = await database.connect()
    // What comes to a queue's row waits, in its transaction, until it is let go on.
    await other.query(`
      create function wait_here() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(7); return new; end $$;
      create trigger wait_here before update on redrive.queues for each row execute function wait_here();
      select pg_advisory_lock(7)`)
    const changes = { deadQueue: 'dead' }
    const changed = run(storage, { op: 'update-queue', name: 'orders', changes, now: noon })
    await expect.poll(() => waiting(database)).toHaveLength(1)
    const items = [{ payload: bytes('a letter'), origin: anOrigin(), failure: aFailure() }]
    const refused = expect(
      run(storage, { op: 'import', queue: 'orders', partition: 0, items, now: noon }),
    ).rejects.toMatchObject({ code: 'DEAD_QUEUE_INVALID' })
    await expect.poll(() => waiting(database)).toHaveLength(2)
    await other.query('select pg_advisory_unlock(7)')
    await changed
    await refused
    expect(await storage.verify()).toEqual([])
  })
})

describe('a queue that is made or changed while another is being deleted', needs(postgres), () => {
  it('is refused while those who asked still wait, and nothing was done', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await run(storage, { op: 'create-queue', queue: { name: 'orders' }, now: noon })
    const other = await database.connect()
    await other.query(`begin; select pg_advisory_xact_lock(hashtext('redrive queue definitions'))`)
    const create = { op: 'create-queue', queue: { name: 'more' }, now: noon } as const
    const update = { op: 'update-queue', name: 'orders', changes: { isPaused: true }, now: noon } as const
    await Promise.all(
      [create, update].map((command) =>
        expect(run(storage, command)).rejects.toMatchObject({
          code: 'STORE_UNAVAILABLE',
          publicMessage: expect.stringContaining('nothing of this was done'),
        }),
      ),
    )
    await other.query('commit')
    expect(await storage.listQueues({ countMax: 9 })).toMatchObject([{ name: 'orders', isPaused: false }])
    await run(storage, create)
  })
})

describe('a dead queue that becomes financial while its letters are being archived', needs(postgres), () => {
  const setUp = async (database: TestDatabase, table: 'archive' | 'queues', event: 'insert' | 'update') => {
    const storage = await database.open()
    await aDeadLetter(storage)
    const other = await database.connect()
    // What comes to this table waits, in its transaction, until it is let go on.
    await other.query(`
      create function wait_here() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(7); return new; end $$;
      create trigger wait_here before ${event} on redrive.${table} for each row execute function wait_here();
      select pg_advisory_lock(7)`)
    return { storage, letGo: () => other.query('select pg_advisory_unlock(7)') }
  }
  const archive = {
    op: 'archive',
    queue: 'letters',
    states: 'by-class',
    endedBefore: noon + hour,
    countMax: 10,
    now: noon + hour,
  } as const
  const change = {
    op: 'update-queue',
    name: 'letters',
    changes: { letterClass: 'financial' },
    now: noon,
  } as const

  it('is told so once the batch under way has ended, and nothing leaves after that', async () => {
    await using database = await testDatabase()
    const { storage, letGo } = await setUp(database, 'archive', 'insert')
    const archived = run(storage, archive)
    await expect.poll(() => waiting(database)).toHaveLength(1)
    let isAnswered = false
    const changed = run(storage, change).then(() => {
      isAnswered = true
    })
    await expect.poll(() => waiting(database)).toHaveLength(2)
    expect(isAnswered).toBe(false)
    await letGo()
    expect(await archived).toEqual({ archived: 1, isMore: false })
    await changed
  })

  it('keeps what is DEAD from a batch that came while the change was under way', async () => {
    await using database = await testDatabase()
    const { storage, letGo } = await setUp(database, 'queues', 'update')
    const changed = run(storage, change)
    await expect.poll(() => waiting(database)).toHaveLength(1)
    const archived = run(storage, archive)
    await expect.poll(() => waiting(database)).toHaveLength(2)
    await letGo()
    await changed
    expect(await archived).toEqual({ archived: 0, isMore: false })
  })

  it('waits for nothing when something else of it is changed', async () => {
    await using database = await testDatabase()
    const { storage, letGo } = await setUp(database, 'archive', 'insert')
    const archived = run(storage, archive)
    await expect.poll(() => waiting(database)).toHaveLength(1)
    await run(storage, { ...change, changes: { isPaused: true } })
    await letGo()
    expect(await archived).toEqual({ archived: 1, isMore: false })
  })
})

/** In queue `letters`, DEAD since noon. */
async function aDeadLetter(storage: Storage): Promise<void> {
  const at = { queue: 'letters', partition: 0, now: noon } as const
  await run(storage, { op: 'create-queue', queue: { name: 'letters', attemptsMax: 1 }, now: noon })
  const items = [{ payload: bytes('x'), sourceId: 's', origin: anOrigin(), failure: aFailure() }]
  await run(storage, { op: 'import', ...at, items })
  const [leased] = await run(storage, { op: 'lease', ...at, holders: ['w'] })
  const given = [{ id: leased?.id ?? '', availableAt: null, isDead: true, error: null }]
  await run(storage, { op: 'retry', ...at, items: given })
}
