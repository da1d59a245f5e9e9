import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { createWebhookActions } from '../../../../test/conformance/support/webhook-actions.ts'
import { aFailure, anOrigin, bytes, day, hour, newItems, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import { seededNumbers } from '../../../../test/seeded-random.ts'
import { toRootId } from '../../../core/ids/ids.ts'
import { convertToUuid, createKsuids, ksuidMax, ksuidMin } from '../../../core/ids/ksuid.ts'
import type { Storage } from '../../contract/storage.ts'

const postgres = await requireService('postgres')

/** Creates the queue `letters` with `count` letters that died at noon. */
async function deadLetters(storage: Storage, count: number): Promise<string[]> {
  const at = { queue: 'letters', partition: 0, now: noon } as const
  await run(storage, { op: 'create-queue', queue: { name: 'letters', attemptsMax: 1 }, now: noon })
  const items = newItems(count, 'letter').map((item, index) => ({
    payload: item.payload,
    sourceId: `job-${index}`,
    origin: anOrigin(),
    failure: aFailure(),
  }))
  await run(storage, { op: 'import', ...at, items })
  const leased = await run(storage, { op: 'lease', ...at, holders: items.map(() => 'w') })
  const given = leased.map(({ id }) => ({ id, availableAt: null, isDead: true, error: null }))
  await run(storage, { op: 'retry', ...at, items: given })
  return leased.map(({ id }) => id)
}

async function archivedIds(storage: Storage): Promise<string[]> {
  return (await storage.listArchive({ queue: 'letters', countMax: 1_000 })).map(({ item }) => item.id)
}

async function liveIds(storage: Storage): Promise<string[]> {
  return (await storage.listItems({ queue: 'letters', countMax: 1_000 })).map(({ id }) => id)
}

/**
 * Moves the deaths to `days` days before the time of the database: the procedure uses its clock, not that of
 * the test.
 */
async function ageTo(database: TestDatabase, days: number): Promise<void> {
  await database.rows(
    `update redrive.items_sourced set ended_at = (extract(epoch from now()) * 1000000)::bigint - $1::bigint
     where ended_at is not null`,
    [days * day],
  )
}

describe('the views in schema dlq', needs(postgres), () => {
  it('the view shows a letter with the documented column names and the id that the API shows', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await run(storage, { op: 'create-queue', queue: { name: 'letters' }, now: noon })
    const [imported] = await run(storage, {
      op: 'import',
      queue: 'letters',
      partition: 0,
      items: [
        {
          payload: bytes('{"amount": 12}'),
          sourceId: 's',
          origin: anOrigin({ name: 'payments' }),
          failure: aFailure({ message: 'refused' }),
          deadLetteredAt: noon - hour + 7,
          retryCount: 2,
        },
      ],
      now: noon,
    })
    expect(await database.rows('select *, created_at::text as died from dlq.dlq_messages')).toMatchObject([
      {
        id: convertToUuid(imported?.id ?? ''),
        original_topic: 'payments',
        error_message: 'refused',
        retry_count: 2,
        max_retries: 3,
        payload: { amount: 12 },
        status: 'PENDING',
        died: '2026-11-15 11:00:00.000007+00',
        last_retry_at: null,
      },
    ])
  })

  it('the SQL function and the core convert every id to the same UUID', async () => {
    await using database = await testDatabase()
    await database.open()
    const random = seededNumbers(7)
    const ids = Array.from(
      { length: 200 },
      (_, index) => createKsuids(undefined, noon + index ** 5, 1, random)[0] ?? '',
    )
    ids.push(ksuidMin, ksuidMax)
    const rows = await database.rows<{ uuid: string }>(
      'select redrive.ksuid_uuid(id) as uuid from unnest($1::text[]) with ordinality as t(id, n) order by n',
      [ids],
    )
    expect(rows.map(({ uuid }) => uuid)).toEqual(ids.map(convertToUuid))
  })

  it('the view shows letters with any bytes and texts', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await run(storage, { op: 'create-queue', queue: { name: 'letters' }, now: noon })
    const payloads = [bytes('not json'), new Uint8Array([0, 255, 254]), bytes('{"a":"\\u0000"}'), bytes('')]
    const messages = ['NUL \0 in it', 'half \ud800 of a pair', 'back\\u0000slash', '']
    const items = payloads.map((payload, index) => ({
      payload,
      sourceId: `s-${index}`,
      origin: anOrigin({ name: `topic \0 ${'x'.repeat(300)}` }),
      failure: aFailure({ message: messages[index] ?? '', errorCode: 'http_503' }),
    }))
    await run(storage, { op: 'import', queue: 'letters', partition: 0, items, now: noon })
    const rows = await database.rows(
      'select payload, error_message from dlq.dlq_messages order by original_topic, id',
    )
    expect(rows.map((row) => row.payload)).toEqual([null, null, null, null])
    expect(rows.map((row) => row.error_message).toSorted()).toEqual(
      ['NUL \ufffd in it', 'half \ufffd of a pair', 'back\\u0000slash', 'http_503'].toSorted(),
    )
  })

  it('the view of queues shows dead queues only, and takes their numbers from the counts', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await deadLetters(storage, 3)
    await run(storage, { op: 'create-queue', queue: { name: 'orders', deadQueue: 'letters' }, now: noon })
    expect(await database.rows('select * from dlq.dlq_queues')).toEqual([
      {
        queue: 'letters',
        letter_class: 'standard',
        pending: '0',
        retrying: '0',
        resolved: '0',
        dead: '3',
        discarded: '0',
        archived: '0',
      },
    ])
  })
})

describe('the summary of webhook consumers', needs(postgres), () => {
  it('the summary has a row per consumer with the exact number of its dead jobs', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const actions = createWebhookActions({ storage, run: (command) => run(storage, command) })
    await actions.channel('orders')
    const { queue } = await actions.consumer('orders', 'billing')
    await actions.consumer('orders', 'mail')
    for (const id of ['a', 'b']) await actions.broadcast('orders', id)
    const jobs = await run(storage, { op: 'lease', queue, partition: 0, holders: ['w', 'w'], now: noon })
    const items = jobs.map(({ id }) => ({ id, isDead: true, error: { errorCode: 'http_410' }, chance: 0 }))
    await run(storage, { op: 'retry', queue, partition: 0, items, now: noon })
    const rows = await database.rows(
      'select consumerId, consumerName, channelId, channelName, dead_count, last_checked_at from dlq.dlq_summary order by consumerId',
    )
    const channel = { channelid: 'orders', channelname: 'ORDERS', last_checked_at: expect.anything() }
    expect(rows).toEqual([
      { consumerid: 'billing', consumername: 'BILLING', ...channel, dead_count: '2' },
      { consumerid: 'mail', consumername: 'MAIL', ...channel, dead_count: '0' },
    ])
  })

  it("another program's dlq_summary stays, and the counts are in the schema redrive", async () => {
    await using database = await testDatabase()
    await database.rows('create schema dlq create table dlq_summary (mine text)')
    await database.open()
    expect(await database.rows('select * from dlq.dlq_summary')).toEqual([])
    expect(await database.rows('select mine from dlq.dlq_summary')).toEqual([])
    expect(await database.rows('select dead_count from redrive.dlq_consumers')).toEqual([])
  })
})

describe('letters in the views after an action', needs(postgres), () => {
  const sent = async (database: TestDatabase) => {
    const storage = await database.open()
    const create = { op: 'create-queue', now: noon } as const
    await run(storage, { ...create, queue: { name: 'letters' } })
    await run(storage, { ...create, queue: { name: 'orders', deadQueue: 'letters' } })
    const items = newItems(3, 'letter').map(({ payload }, index) => ({
      payload,
      sourceId: `s-${index}`,
      origin: anOrigin({ kind: 'queue', name: 'orders' }),
      failure: aFailure(),
    }))
    const imported = await run(storage, { op: 'import', queue: 'letters', partition: 0, items, now: noon })
    const ids = imported.map(({ id }) => toRootId(id ?? ''))
    const [first = '', second = ''] = ids
    const act = { actor: 'ada', now: noon + hour, isDeadAllowed: false, isCapped: false } as const
    await run(storage, { op: 'redrive', letters: [{ letterId: first, queue: null }], ...act })
    await run(storage, { op: 'discard', letters: [{ letterId: second }], reason: 'test', now: noon + hour })
    return { storage, ids }
  }

  it('the view shows the time of the last redrive and no discarded letter', async () => {
    await using database = await testDatabase()
    const { ids } = await sent(database)
    const rows = await database.rows(
      `select id, status, (last_retry_at at time zone 'utc')::text as last_retry_at from dlq.dlq_messages order by id`,
    )
    expect(rows).toEqual([
      { id: convertToUuid(ids[0] ?? ''), status: 'RETRYING', last_retry_at: '2026-11-15 13:00:00' },
      { id: convertToUuid(ids[2] ?? ''), status: 'PENDING', last_retry_at: null },
    ])
    expect(await database.rows('select * from dlq.dlq_queues')).toMatchObject([
      { pending: '1', retrying: '1', resolved: '0', dead: '0', discarded: '1' },
    ])
  })

  it('a query by id in the view uses the index', async () => {
    await using database = await testDatabase()
    const { ids } = await sent(database)
    await database.rows('set enable_seqscan = off')
    const plan = await database.rows<{ 'QUERY PLAN': string }>(
      `explain select * from dlq.dlq_messages where id = '${convertToUuid(ids[0] ?? '')}'`,
    )
    expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toContain('items_sourced_uuid')
  })

  it('the procedure archives discarded letters, also in a financial queue', async () => {
    await using database = await testDatabase()
    const { storage, ids } = await sent(database)
    const changes = { letterClass: 'financial' }
    await run(storage, { op: 'update-queue', name: 'letters', changes, now: noon })
    await ageTo(database, 31)
    await database.rows('call dlq.archive_old_dlq_messages()')
    expect(await archivedIds(storage)).toEqual([ids[1]])
    expect(await storage.countLetters({ filter: {}, by: ['state'] })).toHaveLength(2)
    expect(await storage.verify()).toEqual([])
  })
})

describe('the archive procedure', needs(postgres), () => {
  it('the procedure archives letters that are old enough, in batches, and counts them', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 25)
    await ageTo(database, 31)
    await database.rows('call dlq.archive_old_dlq_messages(30, 10)')
    expect(await archivedIds(storage)).toEqual(ids)
    expect(await storage.readCounts({ queue: 'letters' })).toMatchObject([{ dead: 0, archived: 25 }])
    expect(await storage.verify()).toEqual([])
    expect(await database.rows('select status from dlq.dlq_messages_archive')).toHaveLength(25)
  })

  it('a batch of the procedure ends at 16 MiB, and the next batch continues', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await deadLetters(storage, 5)
    await database.rows(
      `update redrive.items_sourced set payload = convert_to(repeat('x', 9 * 1024 * 1024), 'UTF8') where source_id in ('job-0', 'job-1', 'job-4')`,
    )
    await ageTo(database, 40)
    await database.rows('call dlq.archive_old_dlq_messages(30, 1000)')
    const batches = await storage.listAudit({ target: 'letters', action: 'letters.archive', countMax: 9 })
    expect(batches.map(({ details }) => details.letters)).toEqual([3, 2])
    expect(await archivedIds(storage)).toHaveLength(5)
    expect(await storage.verify()).toEqual([])
  })

  it('the procedure writes one audit row per batch with the fields that a server writes', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await deadLetters(storage, 5)
    await ageTo(database, 31)
    const before = Date.now() * 1_000
    await database.rows('call dlq.archive_old_dlq_messages(30, 3)')
    const audit = await storage.listAudit({ action: 'letters.archive', countMax: 9 })
    const endedBefore = audit[0]?.details.endedBefore as number
    expect(Math.abs(endedBefore - (before - 30 * day))).toBeLessThan(hour)
    const asked = { states: ['done', 'dead', 'discarded'], endedBefore, batchSize: 3 }
    expect(audit.map(({ target, details }) => [target, details])).toEqual([
      ['letters', { ...asked, letters: 2 }],
      ['letters', { ...asked, letters: 3 }],
    ])
    expect(audit[0]?.actor).toMatch(/^database user \w+/)
    expect(audit[0]?.reason).toBe('archive_old_dlq_messages')

    await run(storage, {
      op: 'update-queue',
      name: 'letters',
      changes: { letterClass: 'financial' },
      now: noon,
    })
    const items = [{ payload: bytes('x'), sourceId: 'resolved', origin: anOrigin(), failure: aFailure() }]
    const at = { queue: 'letters', partition: 0, now: noon } as const
    await run(storage, { op: 'import', ...at, items })
    const [leased] = await run(storage, { op: 'lease', ...at, holders: ['w'] })
    await run(storage, { op: 'complete', ...at, ids: [leased?.id ?? ''] })
    await ageTo(database, 31)
    await database.rows('call dlq.archive_old_dlq_messages()')
    const [last] = await storage.listAudit({ action: 'letters.archive', countMax: 1 })
    expect(last?.details).toMatchObject({ states: ['done', 'discarded'], batchSize: 1_000, letters: 1 })
  })

  it.each(['null, 10', '30, null', '2147483647, 10', '-1, 10', '30, 0'])(
    'refuses (%s) instead of doing nothing or too much',
    async (parameters) => {
      await using database = await testDatabase()
      await (await database.open()).close()
      await expect(database.rows(`call dlq.archive_old_dlq_messages(${parameters})`)).rejects.toThrow(
        'retention days must be from 0 to 36500',
      )
    },
  )

  it('the procedure keeps letters that are too young or not ended', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 1)
    await ageTo(database, 29)
    const items = [{ payload: bytes('waits'), sourceId: 'waits', origin: anOrigin() }]
    const [waiting] = await run(storage, { op: 'import', queue: 'letters', partition: 0, items, now: noon })
    await database.rows('call dlq.archive_old_dlq_messages(30, 10)')
    expect(await liveIds(storage)).toEqual([...ids, waiting?.id])
    await database.rows('call dlq.archive_old_dlq_messages(28, 10)')
    expect(await liveIds(storage)).toEqual([waiting?.id])
  })

  it('the procedure keeps DEAD letters of a financial queue', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    await deadLetters(storage, 2)
    await run(storage, {
      op: 'update-queue',
      name: 'letters',
      changes: { letterClass: 'financial' },
      now: noon,
    })
    await ageTo(database, 31)
    await database.rows('call dlq.archive_old_dlq_messages()')
    expect(await liveIds(storage)).toHaveLength(2)
  })

  it('the procedure keeps DEAD letters once their queue is financial, also during a run', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 8)
    await ageTo(database, 31)
    const other = await database.connect()
    // The second batch waits in its transaction until the test releases it.
    await other.query(`
      create function wait_here() returns trigger language plpgsql as $$
      begin
        if exists (select from redrive.audit where action = 'letters.archive') then
          perform pg_advisory_xact_lock(7);
        end if;
        return new;
      end $$;
      create trigger wait_here before insert on redrive.audit for each row execute function wait_here();
      select pg_advisory_lock(7)`)
    const called = database.rows('call dlq.archive_old_dlq_messages(30, 2)')
    const waiting = async () =>
      (
        await other.query(`select from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`)
      ).rows
    await expect.poll(waiting).toHaveLength(1)
    const changes = { letterClass: 'financial' }
    const changed = run(storage, { op: 'update-queue', name: 'letters', changes, now: noon })
    await expect.poll(waiting).toHaveLength(2)
    await other.query('select pg_advisory_unlock(7)')
    await Promise.all([changed, called])
    expect(await archivedIds(storage)).toEqual(ids.slice(0, 4))
    expect(await liveIds(storage)).toEqual(ids.slice(4))
    expect(await storage.verify()).toEqual([])
  })

  it('the procedure never uses a class that was changed after its snapshot', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 2)
    await ageTo(database, 31)
    const client = await database.connect()
    await client.query('begin isolation level repeatable read; select from redrive.queues')
    const changes = { letterClass: 'financial' }
    await run(storage, { op: 'update-queue', name: 'letters', changes, now: noon })
    await expect(client.query('call dlq.archive_old_dlq_messages()')).rejects.toThrow('could not serialize')
    await client.query('rollback')
    expect(await liveIds(storage)).toEqual(ids)
  })

  it('the procedure skips rows that another connection locks, and archives them in the next run', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 10)
    await ageTo(database, 31)
    const other = await database.connect()
    await other.query('begin')
    await other.query('select from redrive.items_sourced where id = any ($1) for update', [ids.slice(0, 5)])
    await database.rows('call dlq.archive_old_dlq_messages(30, 5)')
    expect(await archivedIds(storage)).toEqual(ids.slice(5))
    expect(await liveIds(storage)).toEqual(ids.slice(0, 5))
    await other.query('commit')
    await database.rows('call dlq.archive_old_dlq_messages(30, 5)')
    expect(await archivedIds(storage)).toEqual(ids)
    expect(await liveIds(storage)).toEqual([])
    expect(await storage.verify()).toEqual([])
  })

  it('the procedure leaves rows that an operator moves at the same time', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 10)
    await ageTo(database, 31)
    const rescued = ids.slice(0, 5)
    const operator = await database.connect()
    await operator.query('begin')
    await operator.query(
      `with rescued as (
         update redrive.items_sourced set state = 0, ended_at = null where id = any ($1)
         returning queue_id, created_at, group_id
       ), regrouped as (
         insert into redrive.letter_counts (queue_id, group_id, state, redrives, slot, n)
         select queue_id, group_id, s.state, 0, -9, s.by * count(*)
         from rescued cross join (values (0, 1), (4, -1)) as s(state, by) group by 1, 2, 3, 4, s.by
       ), summed as (
         insert into redrive.letter_sums (queue_id, state, redrives, slot, n)
         select queue_id, s.state, 0, -9, s.by * count(*)
         from rescued cross join (values (0, 1), (4, -1)) as s(state, by) group by 1, 2, 3, s.by
       ), slugged as (
         insert into redrive.slug_sums (slug, state, slot, n)
         select g.slug, s.state, -9, s.by * count(*) from rescued r join redrive.groups g on g.id = r.group_id
           cross join (values (0, 1), (4, -1)) as s(state, by) group by 1, 2, 3, s.by
       )
       update redrive.counts c set dead = c.dead - 5, waiting = c.waiting + 5,
         created_sum_ms = c.created_sum_ms + (select sum(created_at / 1000) from rescued)
       where (c.queue_id, c.partition, c.slot) in (
         select queue_id, partition, slot from redrive.counts where dead > 0 order by slot limit 1)`,
      [rescued],
    )
    await database.rows('call dlq.archive_old_dlq_messages(30, 5)')
    await operator.query('commit')
    await database.rows('call dlq.archive_old_dlq_messages(30, 5)')
    expect(await liveIds(storage)).toEqual(rescued)
    expect(await archivedIds(storage)).toEqual(ids.slice(5))
    expect(await storage.verify()).toEqual([])
  })

  it('a call inside a transaction is rolled back with it', async () => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 6)
    await ageTo(database, 31)
    const client = await database.connect()
    await client.query('begin')
    await client.query('call dlq.archive_old_dlq_messages(30, 2)')
    await client.query('rollback')
    expect(await liveIds(storage)).toEqual(ids)
    await client.query('begin')
    await client.query('call dlq.archive_old_dlq_messages(30, 2)')
    await client.query('commit')
    expect(await archivedIds(storage)).toEqual(ids)
  })

  it.each([
    ['a string of several statements', `select 1; call dlq.archive_old_dlq_messages(30, 2); select 2`],
    ['a function', `select people_archive()`],
    ['a function of SQL', `select people_archive_sql()`],
    [
      'a block with a handler',
      `do $$ begin call dlq.archive_old_dlq_messages(30, 2); exception when others then raise; end $$`,
    ],
  ])('a call in %s archives everything or nothing', async (_, text) => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 6)
    await ageTo(database, 31)
    const client = await database.connect()
    await client.query(`
      create function people_archive() returns void language plpgsql as
        $$ begin call dlq.archive_old_dlq_messages(30, 2); end $$;
      create function people_archive_sql() returns void language sql as
        $$ call dlq.archive_old_dlq_messages(30, 2) $$`)
    await expect(client.query(`${text}; select 1 / 0`)).rejects.toThrow('division by zero')
    expect(await liveIds(storage)).toEqual(ids)
    await client.query(text)
    expect(await archivedIds(storage)).toEqual(ids)
    expect(await storage.verify()).toEqual([])
  })

  it.each([
    ['alone', 'call dlq.archive_old_dlq_messages(30, 2)', []],
    ['with parameters', 'call dlq.archive_old_dlq_messages($1, $2)', [30, 2]],
    ['in a block', 'do $$ begin call redrive.archive_old_dlq_messages(30, 2); end $$', []],
  ])('the procedure commits after each batch when it is called %s', async (_, text, values) => {
    await using database = await testDatabase()
    const storage = await database.open()
    const ids = await deadLetters(storage, 6)
    await ageTo(database, 31)
    const client = await database.connect()
    await client.query(`
      create function stop_third() returns trigger language plpgsql as $$
      begin
        if (select count(*) from redrive.audit where action = 'letters.archive') = 2 then raise 'stopped'; end if;
        return new;
      end $$;
      create trigger stop_third before insert on redrive.audit for each row execute function stop_third()`)
    await expect(client.query(text, values)).rejects.toThrow('stopped')
    expect(await archivedIds(storage)).toEqual(ids.slice(0, 4))
    expect(await storage.verify()).toEqual([])
  })
})
