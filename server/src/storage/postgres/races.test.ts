import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon, second } from '../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../test/postgres.ts'
import { readKsuidTime } from '../../core/ids/ksuid.ts'
import type { Storage } from '../contract/storage.ts'

const postgres = await requireService('postgres')

/** The connections of the store that wait for a lock. */
async function waiting(database: TestDatabase): Promise<unknown[]> {
  return database.rows(`select from pg_stat_activity
    where application_name = 'redrive' and wait_event_type = 'Lock' and datname = current_database()`)
}

/**
 * Another transaction has changed a row (extended its lease) and not committed yet when the command arrives.
 * The command waits for the row, and must then use its new version: not the old one, and not treat the row as
 * missing.
 */
describe('a command that waits for the lock on an item', needs(postgres), () => {
  it.each(['complete', 'retry', 'delete', 'clear', 'extend'] as const)(
    'a %s that waits for the lock uses the new version of the item',
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

describe('servers that produce to one partition', needs(postgres), () => {
  it('a produce whose ids are older than those of another server gets ids of the present', async () => {
    await using database = await testDatabase()
    const [one, other] = [noon + 10 * second, noon + 20 * second].map((now) => ({
      clock: { now: () => now },
    }))
    const [ahead, behind] = [await database.open(one), await database.open(other)]
    await run(ahead, { op: 'create-queue', queue: { name: 'orders' }, now: noon })
    const produce = (storage: Storage, now: number) =>
      run(storage, { op: 'produce', queue: 'orders', partition: 0, items: newItems(1), now })
    const [first] = (await produce(behind, noon)).ids
    const [second_] = (await produce(ahead, noon + 10 * second)).ids
    const [third] = (await produce(behind, noon + second)).ids
    const times = [first, second_, third].map((id) => readKsuidTime(id ?? ''))
    // A transaction that reads the last id first would create the next id of second 10.
    expect(times).toEqual([noon, noon + 10 * second, noon + 20 * second])
    expect(await ahead.verify()).toEqual([])
  })
})

describe('a queue that gets a dead queue while a letter arrives', needs(postgres), () => {
  it('a letter is refused by a queue that gets a dead queue at the same time', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    for (const name of ['dead', 'orders'])
      await run(storage, { op: 'create-queue', queue: { name }, now: noon })
    const other = await database.connect()
    // A transaction that changes the row of a queue waits until the test releases it.
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

describe('a queue that is created or changed during a deletion', needs(postgres), () => {
  it('creating or changing a queue during a deletion times out and changes nothing', async () => {
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
          publicMessage: expect.stringContaining('the write was rolled back'),
        }),
      ),
    )
    await other.query('commit')
    expect(await storage.listQueues({ countMax: 9 })).toMatchObject([{ name: 'orders', isPaused: false }])
    await run(storage, create)
  })
})

describe('a dead queue that becomes financial while its letters are archived', needs(postgres), () => {
  const setUp = async (database: TestDatabase, table: 'archive' | 'queues', event: 'insert' | 'update') => {
    const storage = await database.open()
    await aDeadLetter(storage)
    const other = await database.connect()
    // A transaction that writes to this table waits until the test releases it.
    await other.query(`
      create function wait_here() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(7); return new; end $$;
      create trigger wait_here before ${event} on redrive.${table} for each row execute function wait_here();
      select pg_advisory_lock(7)`)
    return { storage, release: () => other.query('select pg_advisory_unlock(7)') }
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

  it('a change of the class is answered after the archive batch in progress has ended', async () => {
    await using database = await testDatabase()
    const { storage, release } = await setUp(database, 'archive', 'insert')
    const archived = run(storage, archive)
    await expect.poll(() => waiting(database)).toHaveLength(1)
    let isAnswered = false
    const changed = run(storage, change).then(() => {
      isAnswered = true
    })
    await expect.poll(() => waiting(database)).toHaveLength(2)
    expect(isAnswered).toBe(false)
    await release()
    expect(await archived).toEqual({ archived: 1, isMore: false })
    await changed
  })

  it('an archive batch that arrives during the change of the class keeps DEAD letters', async () => {
    await using database = await testDatabase()
    const { storage, release } = await setUp(database, 'queues', 'update')
    const changed = run(storage, change)
    await expect.poll(() => waiting(database)).toHaveLength(1)
    const archived = run(storage, archive)
    await expect.poll(() => waiting(database)).toHaveLength(2)
    await release()
    await changed
    expect(await archived).toEqual({ archived: 0, isMore: false })
  })

  it('a change of another policy does not wait for the archive batch', async () => {
    await using database = await testDatabase()
    const { storage, release } = await setUp(database, 'archive', 'insert')
    const archived = run(storage, archive)
    await expect.poll(() => waiting(database)).toHaveLength(1)
    await run(storage, { ...change, changes: { isPaused: true } })
    await release()
    expect(await archived).toEqual({ archived: 1, isMore: false })
  })
})

/** Creates the queue `letters` with a letter that is DEAD since noon. */
async function aDeadLetter(storage: Storage): Promise<void> {
  const at = { queue: 'letters', partition: 0, now: noon } as const
  await run(storage, { op: 'create-queue', queue: { name: 'letters', attemptsMax: 1 }, now: noon })
  const items = [{ payload: bytes('x'), sourceId: 's', origin: anOrigin(), failure: aFailure() }]
  await run(storage, { op: 'import', ...at, items })
  const [leased] = await run(storage, { op: 'lease', ...at, holders: ['w'] })
  const given = [{ id: leased?.id ?? '', availableAt: null, isDead: true, error: null }]
  await run(storage, { op: 'retry', ...at, items: given })
}
