import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import type { ItemToImport } from '../../contract/items.ts'
import type { Storage } from '../../contract/storage.ts'

const postgres = await requireService('postgres')

/** Enough letters for COPY. */
const many = 200

function aLetter(sourceId: string, changes: Partial<ItemToImport> = {}): ItemToImport {
  return { payload: bytes(sourceId), sourceId, origin: anOrigin(), failure: aFailure(), ...changes }
}

function letters(from: number, count = many): ItemToImport[] {
  return Array.from({ length: count }, (_, index) => aLetter(`s${from + index}`))
}

async function withQueue(database: TestDatabase): Promise<Storage> {
  const storage = await database.open()
  await run(storage, { op: 'create-queue', queue: { name: 'dead', partitions: 2 }, now: noon })
  return storage
}

const importTo = (storage: Storage, items: readonly ItemToImport[], partition = 0) =>
  run(storage, { op: 'import', queue: 'dead', partition, items, now: noon })

const accepted = async (storage: Storage) =>
  (await storage.readCounts({ queue: 'dead' })).reduce((sum, counts) => sum + counts.accepted, 0)

/** Until a transaction of the store waits for a row lock. */
async function waitForLockWait(database: TestDatabase): Promise<void> {
  const waiting = `select from pg_stat_activity where application_name = 'redrive' and wait_event_type = 'Lock'
    and datname = current_database()`
  await expect.poll(() => database.rows(waiting)).toHaveLength(1)
}

describe('import of a batch of letters', needs(postgres), () => {
  it('letters that exist are reported with their ids, and the others are stored', async () => {
    await using database = await testDatabase()
    const [here, there] = [await withQueue(database), await database.open()]
    const first = await importTo(here, letters(0))
    const again = await importTo(there, letters(many / 2), 1)
    expect(again.slice(0, many / 2)).toMatchObject(
      first.slice(many / 2).map(({ id }) => ({ id: null, existingId: id })),
    )
    expect(again.slice(many / 2).every(({ id }) => id !== null)).toBe(true)
    expect(await accepted(here)).toBe(1.5 * many)
    // The next batch has no repeats, and is stored as usual.
    const next = await importTo(there, letters(10 * many))
    expect(next.every(({ id }) => id !== null)).toBe(true)
    expect(await here.verify()).toEqual([])
  })

  it('payloads of any length are stored byte for byte while other batches are copied', async () => {
    await using database = await testDatabase()
    const storage = await withQueue(database)
    // Shorter and longer than a message of the protocol, and together more than a socket accepts at once.
    const sizes = [1, 300, 65_530, 40_000, 65_536, 200_000, 7, 65_400, 3_000, 20_000]
    const batches = Array.from({ length: 3 }, (_, batch) =>
      Array.from({ length: 250 }, (_unused, index) => {
        const payload = new Uint8Array(sizes[(batch + index) % sizes.length] ?? 0).fill(batch * 31 + index)
        return aLetter(`s${batch}/${index}`, { payload })
      }),
    )
    const again = batches.map((items) =>
      items.map((item) => ({ ...item, sourceId: `again/${item.sourceId}` })),
    )
    await Promise.all(batches.map((items, batch) => importTo(storage, items, batch % 2)))
    await Promise.all(again.map((items, batch) => importTo(storage, items, batch % 2)))
    const rows = await database.rows<{ source_id: string; payload: Uint8Array }>(
      'select source_id, payload from redrive.items_sourced',
    )
    const sent = new Map(batches.flat().map(({ sourceId, payload }) => [sourceId, Buffer.from(payload)]))
    expect(rows).toHaveLength(2 * sent.size)
    for (const { source_id, payload } of rows) {
      expect(sent.get(source_id.replace('again/', ''))?.equals(payload)).toBe(true)
    }
  })

  it('a batch that is sent again and again leaves no dead rows', async () => {
    await using database = await testDatabase()
    const storage = await withQueue(database)
    const size = async () => {
      const [row] = await database.rows<{ size: number }>(
        `select pg_relation_size('redrive.items_sourced')::int4 as size`,
      )
      return row?.size
    }
    for (let time = 0; time < 2; time++) await importTo(storage, letters(0))
    const before = await size()
    for (let time = 0; time < 5; time++) await importTo(storage, letters(0))
    expect(await size()).toBe(before)
    expect(await accepted(storage)).toBe(many)
  })

  it('a source id that occurs twice is stored once, in one command or in two', async () => {
    await using database = await testDatabase()
    const storage = await withQueue(database)
    const twice = await importTo(storage, [...letters(0), aLetter('s7')])
    expect(twice.at(-1)).toMatchObject({ id: null, existingId: twice[7]?.id })

    const command = { op: 'import', queue: 'dead', now: noon } as const
    const entry = { at: noon, actor: 'ann', action: 'a', target: 't', reason: '', requestId: '', details: {} }
    // A batch without repeats, so that the store does not expect repeats.
    await importTo(storage, letters(5 * many))
    const [left, , right] = await storage.write([
      { ...command, partition: 0, items: letters(many) },
      { op: 'audit', entries: [entry] },
      { ...command, partition: 1, items: letters(many) },
    ] as const)
    expect(left.every(({ id }) => id !== null)).toBe(true)
    expect(right.map(({ existingId }) => existingId)).toEqual(left.map(({ id }) => id))
    expect(await accepted(storage)).toBe(3 * many)
    expect(await storage.verify()).toEqual([])
  })

  it('a batch that two servers store at the same moment is stored once, and both get the ids', async () => {
    await using database = await testDatabase()
    const servers = [await withQueue(database), await database.open()]
    for (let round = 0; round < 5; round++) {
      const batch = letters(round * many)
      const [left = [], right = []] = await Promise.all(
        servers.map((storage, partition) => importTo(storage, batch, partition)),
      )
      for (const [index, stored] of left.entries()) {
        const other = right[index]
        expect([stored.id, other?.id]).toContain(null)
        expect(stored.id ?? stored.existingId).toBe(other?.id ?? other?.existingId)
      }
      expect(await accepted(servers[0] as Storage)).toBe((round + 1) * many)
    }
    expect(await servers[0]?.verify()).toEqual([])
  })

  it.each(['commit', 'rollback'] as const)(
    'an import waits for the %s of a transaction with the same source id',
    async (end) => {
      await using database = await testDatabase()
      const storage = await withQueue(database)
      const [before] = await importTo(storage, letters(0, 1))
      const other = await database.connect()
      await other.query('begin')
      await other.query(`update redrive.items_sourced set source_id = 's170' where source_id = 's0'`)
      const stored = importTo(storage, letters(100), 1)
      await waitForLockWait(database)
      await other.query(end)
      const repeated = (await stored)[70]
      if (end === 'commit') expect(repeated).toMatchObject({ id: null, existingId: before?.id })
      else expect(repeated?.id).not.toBeNull()
      expect((await stored).filter(({ id }) => id === null)).toHaveLength(end === 'commit' ? 1 : 0)
      expect(await storage.verify()).toEqual([])
    },
  )

  it('an import whose connection is cut stores nothing, and can be sent again', async () => {
    await using database = await testDatabase()
    const storage = await withQueue(database)
    await importTo(storage, letters(0, 1))
    const other = await database.connect()
    await other.query('begin')
    await other.query(`update redrive.items_sourced set source_id = 's170' where source_id = 's0'`)
    const stored = expect(importTo(storage, letters(100))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    await waitForLockWait(database)
    await database.rows(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'redrive' and wait_event_type = 'Lock' and datname = current_database()`)
    await stored
    await other.query('rollback')
    expect(await accepted(storage)).toBe(1)
    const again = await importTo(storage, letters(100))
    expect(again.every(({ id }) => id !== null)).toBe(true)
    expect(await storage.verify()).toEqual([])
  })

  it('a batch stores the same bytes as its letters sent one by one', async () => {
    await using database = await testDatabase()
    const storage = await withQueue(database)
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const invalid = new Uint8Array([0xc3, 0x28, 0x00, 0xff, 0xfe, 0x80])
    const large = new Uint8Array(3_000_000).map((_, index) => index * 7)
    const odd: readonly Partial<ItemToImport>[] = [
      { payload: new Uint8Array(), key: new Uint8Array(), headers: [] },
      { payload: everyByte, key: everyByte, headers: [['every', everyByte]] },
      {
        payload: invalid,
        key: invalid,
        headers: [
          ['', invalid],
          ['none', null],
          ['"\\', new Uint8Array()],
        ],
      },
      {
        payload: everyByte.subarray(65, 70),
        key: everyByte.subarray(1, 2),
        headers: [['view', everyByte.subarray(9)]],
      },
      { payload: large, key: large.subarray(0, 70_000) },
      { failure: aFailure({ message: 'NUL \0, half \ud83e, “注文” 🧾'.repeat(9_000), stack: '' }) },
      { failure: null, history: [aFailure(), aFailure({ message: 'ä' })] },
      { origin: null, priority: -5, attempts: 3, attemptsMax: 9, kind: 'k', encoding: 'e', reference: 'r' },
      { availableAt: noon + 1, expireDeadline: 2 ** 52, deadLetteredAt: -1 },
      { lease: { holder: 'h', deadline: noon - 1 }, retryCount: 12, letterId: '0ujtsYcgvSTl8PAuAdqWYSMnLOv' },
      { givenLeaseDeadline: -(2 ** 40), deadLetteredAt: null },
      ...Array.from({ length: 60 }, (_, index) => ({ payload: large.subarray(0, 2_000 + index) })),
    ]
    const batch = odd.map((changes, index) => aLetter(`“${index}”`, changes))
    await importTo(storage, batch, 0)
    await run(storage, { op: 'create-queue', queue: { name: 'single', partitions: 2 }, now: noon })
    for (const item of batch) {
      await run(storage, { op: 'import', queue: 'single', partition: 0, items: [item], now: noon })
    }
    const listed = async (queue: string) => {
      const items = await storage.listItems({ queue, countMax: 100 })
      return items.map((item) => ({ ...item, id: '', rootId: '', queue: '', groupId: item.groupId !== null }))
    }
    expect(await listed('dead')).toEqual(await listed('single'))
    expect(await listed('dead')).toHaveLength(odd.length)
    const uuids = `select count(*)::int4 as n from redrive.items_sourced where uuid = redrive.ksuid_uuid(id)`
    expect(await database.rows(uuids)).toEqual([{ n: 2 * odd.length }])
    expect(await storage.verify()).toEqual([])
  })
})
