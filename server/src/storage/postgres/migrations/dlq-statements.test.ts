import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { expectConsistentStore } from '../../../../test/conformance/support/expect-consistent-store.ts'
import { aFailure, anOrigin, bytes, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import type { Storage } from '../../contract/storage.ts'

const postgres = await requireService('postgres')

const claim = `SELECT id, original_topic, error_message, retry_count, max_retries, payload
FROM dlq.dlq_messages
WHERE status = 'PENDING'
  AND retry_count < max_retries
ORDER BY created_at ASC
LIMIT $1
FOR UPDATE SKIP LOCKED;`
const startRetry = `UPDATE dlq.dlq_messages
SET status = 'RETRYING', last_retry_at = NOW()
WHERE id = $1;`
const resolve = `UPDATE dlq.dlq_messages
SET status = 'RESOLVED'
WHERE id = $1;`
const failRetry = `UPDATE dlq.dlq_messages
SET retry_count = retry_count + 1,
    status = CASE WHEN retry_count + 1 >= max_retries THEN 'DEAD' ELSE 'PENDING' END
WHERE id = $1;`
const countByTopic = `SELECT original_topic, status, COUNT(*) as count
FROM dlq.dlq_messages
GROUP BY original_topic, status
ORDER BY original_topic, status;`
const insert = `insert into dlq.dlq_messages (original_topic, error_message, payload)
  values ($1, $2, $3) returning *`

async function openStore(): Promise<{ database: TestDatabase; storage: Storage }> {
  const database = await testDatabase()
  const storage = await database.open()
  await run(storage, { op: 'create-queue', queue: { name: 'orders.dlq' }, now: noon })
  await run(storage, { op: 'create-queue', queue: { name: 'orders', deadQueue: 'orders.dlq' }, now: noon })
  return { database, storage }
}

async function insertMessages(database: TestDatabase, ...messages: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const message of messages) {
    const [row] = await database.rows<{ id: string }>(insert, ['orders', message, '{"amount": 12}'])
    ids.push(row?.id ?? '')
  }
  return ids
}

describe('the documented statements on dlq.dlq_messages', needs(postgres), () => {
  it('an insert captures a letter with the documented defaults, and counts it exactly', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    const [row] = await database.rows(insert, ['orders', 'network timeout after 30 s', '{"amount": 12}'])
    expect(row).toMatchObject({
      original_topic: 'orders',
      error_message: 'network timeout after 30 s',
      retry_count: 0,
      max_retries: 3,
      payload: { amount: 12 },
      status: 'PENDING',
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
      last_retry_at: null,
    })
    expect(await database.rows('select * from dlq.dlq_messages')).toEqual([row])
    await insertMessages(database, 'network timeout after 7 s', 'auth: refused')
    await expectConsistentStore(storage)
    await run(storage, {
      op: 'import',
      queue: 'orders.dlq',
      partition: 0,
      items: ['network timeout after 9.5 s', 'auth: refused'].map((text, index) => ({
        payload: bytes('{}'),
        sourceId: `s-${index}`,
        origin: anOrigin({ name: 'orders' }),
        failure: aFailure({ message: text, errorCode: 'unknown', errorClass: '', stack: '' }),
      })),
      now: noon,
    })
    await expectConsistentStore(storage)
    const groups = await storage.listGroups({ filter: {}, countMax: 10, isEmptyToo: false })
    // Letters that a program inserts have groups of their own until they are grouped again.
    expect(groups.map(({ slug, title, count }) => [slug, title, count]).toSorted()).toEqual([
      ['auth', 'auth: refused', 1],
      ['auth', 'auth: refused', 1],
      ['network', 'network timeout after <duration>', 1],
      ['network', 'network timeout after <n> s', 2],
    ])
    expect(await storage.listAudit({ countMax: 10 })).toHaveLength(3)
  })

  it('a campaign does not contain messages that were inserted after its creation', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    await insertMessages(database, 'a', 'b')
    const put = { op: 'put-campaign', version: 0, state: 'freezing', document: {} } as const
    await run(storage, { ...put, id: 'first' })
    await insertMessages(database, 'c')
    await run(storage, { ...put, id: 'second' })
    const freeze = { op: 'freeze-letters', filter: {}, countMax: 9, examinedMax: 99 } as const
    expect(await run(storage, { ...freeze, campaignId: 'first' })).toMatchObject({ added: 2 })
    expect(await run(storage, { ...freeze, campaignId: 'second' })).toMatchObject({ added: 3 })
  })

  it('an insert is part of the transaction of its caller', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    const client = await database.connect()
    await client.query('begin')
    await client.query(insert, ['orders', 'x', null])
    await client.query('rollback')
    expect(await database.rows('select * from dlq.dlq_messages')).toEqual([])
    await expectConsistentStore(storage)
  })

  it('a message of a topic without a dead queue goes to the queue dlq_messages', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    await database.rows(insert, ['k1s0.system.auth.v1', 'x', null])
    await database.rows(insert, ['k1s0.system.auth.v1', 'y', null])
    expect(await storage.listItems({ queue: 'dlq_messages', countMax: 10 })).toHaveLength(2)
    await expectConsistentStore(storage)
  })

  it('two callers claim different messages at the same time', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    const ids = await insertMessages(database, 'a', 'b', 'c')
    const [one, two] = [await database.connect(), await database.connect()]
    await Promise.all([one.query('begin'), two.query('begin')])
    const first = (await one.query(claim, [2])).rows.map(({ id }) => id)
    const second = (await two.query(claim, [2])).rows.map(({ id }) => id)
    expect([first, second]).toEqual([ids.slice(0, 2), ids.slice(2)])
    await one.query(startRetry, [first[0]])
    await Promise.all([one.query('commit'), two.query('commit')])
    expect((await database.rows(claim, [10])).map(({ id }) => id)).toEqual(ids.slice(1))
    await expectConsistentStore(storage)
  })

  it('the updates of a retry keep counts, letter and audit exact', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    const [resolved, failing] = await insertMessages(database, 'a', 'b')
    await database.rows(startRetry, [resolved])
    await expectConsistentStore(storage)
    await database.rows(resolve, [resolved])
    for (const [status, count] of [
      ['PENDING', 1],
      ['PENDING', 2],
      ['DEAD', 3],
    ] as const) {
      await database.rows(startRetry, [failing])
      await database.rows(failRetry, [failing])
      expect(
        await database.rows('select status, retry_count from dlq.dlq_messages where id = $1', [failing]),
      ).toEqual([{ status, retry_count: count }])
      await expectConsistentStore(storage)
    }
    expect(await database.rows(countByTopic)).toEqual([
      { original_topic: 'orders', status: 'DEAD', count: '1' },
      { original_topic: 'orders', status: 'RESOLVED', count: '1' },
    ])
    const [found] = await storage.findLettersByUuid([failing ?? ''])
    const [letter] = await storage.getLetters([found?.letterId ?? ''])
    expect(letter?.letter?.redrives.map(({ number, outcome }) => [number, outcome])).toEqual([
      [3, 'failed'],
      [2, 'failed'],
      [1, 'failed'],
    ])
    expect(letter?.letter).toMatchObject({ requeueCount: 3, lastRedriveAt: expect.any(Number) })
    const audit = await storage.listAudit({ target: found?.letterId ?? '', countMax: 20 })
    expect(audit.map(({ action }) => action)).toEqual([
      'letter.redrive-end',
      'letter.redrive',
      'letter.redrive-end',
      'letter.redrive',
      'letter.redrive-end',
      'letter.redrive',
      'letters.capture',
    ])
  })

  it('a message that a consumer has leased cannot be ended with SQL', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    const [id = ''] = await insertMessages(database, 'a')
    const lease = { op: 'lease', queue: 'orders.dlq', partition: 0, holders: ['w'], now: noon } as const
    expect(await run(storage, lease)).toHaveLength(1)
    await expect(database.rows(resolve, [id])).rejects.toThrow(
      'was not started by an update of dlq.dlq_messages',
    )
    await expectConsistentStore(storage)
  })

  it('a caller needs only permissions on the view', async () => {
    const { database, storage } = await openStore()
    await using _ = database
    const role = `redrive_sql_${Math.random().toString(36).slice(2)}`
    await database.rows(`create role ${role}`)
    await database.rows(`grant usage on schema dlq to ${role}`)
    await database.rows(`grant select, insert, update on dlq.dlq_messages to ${role}`)
    const client = await database.connect()
    await client.query(`set role ${role}`)
    await client.query(insert, ['orders', 'x', null])
    const { rows } = await client.query(claim, [1])
    await client.query(startRetry, [rows[0].id])
    await client.query(resolve, [rows[0].id])
    await client.query('reset role')
    await client.query(`drop owned by ${role}; drop role ${role}`)
    await expectConsistentStore(storage)
  })

  it.each([
    ['another column', `update dlq.dlq_messages set error_message = 'x'`, 'only status, retry_count'],
    ['a jump of retry_count', 'update dlq.dlq_messages set retry_count = 7', 'can only become 0 or 1, not 7'],
    ['an unknown status', `update dlq.dlq_messages set status = 'GONE'`, 'status GONE is none of'],
    ['a delete', 'delete from dlq.dlq_messages', 'cannot be deleted with SQL'],
    [
      'a chosen id',
      `insert into dlq.dlq_messages (id, original_topic, error_message) values (gen_random_uuid(), 'a', 'b')`,
      'cannot be chosen',
    ],
    [
      'no topic',
      `insert into dlq.dlq_messages (error_message) values ('b')`,
      'original_topic must not be null',
    ],
    [
      'another max_retries',
      `insert into dlq.dlq_messages (original_topic, error_message, max_retries) values ('orders', 'b', 9)`,
      'max_retries is 9, but',
    ],
  ])('a statement that cannot be kept exact is refused: %s', async (_what, statement, message) => {
    const { database, storage } = await openStore()
    await using _ = database
    await insertMessages(database, 'a')
    await expect(database.rows(statement)).rejects.toThrow(message)
    await expectConsistentStore(storage)
  })

  it('the archive procedure reports with the documented notice', async () => {
    const { database } = await openStore()
    await using _ = database
    const client = await database.connect()
    const notices: (string | undefined)[] = []
    client.on('notice', ({ message }) => notices.push(message))
    await client.query('CALL dlq.archive_old_dlq_messages();')
    expect(notices).toEqual(['Archived 0 DLQ messages older than 30 days'])
  })
})
