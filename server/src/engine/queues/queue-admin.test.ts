import { afterEach, describe, expect, it } from 'vitest'
import { openTestEngine, type TestEngine, toTexts } from '../../../test/engine/test-engine.ts'
import { bytes, newItems } from '../../../test/make.ts'
import type { Storage } from '../../storage/contract/storage.ts'

const ann = { actor: 'ann', reason: 'test data', requestId: 'r1' }

describe('queue administration', () => {
  let given: TestEngine
  const open = async () => {
    given = await openTestEngine()
    return given
  }

  afterEach(() => given.close())

  it('the engine writes an audit row in the transaction of a delete, and none if nothing was deleted', async () => {
    const { engine, storage } = await open()
    const { ids } = await engine.produce('orders', newItems(1))
    await engine.deleteItems('orders', 0, ['0'.repeat(27), ...ids], ann)
    const attribution = { actor: 'ann', target: 'orders', reason: 'test data' }
    expect(await storage.listAudit({ countMax: 1 })).toMatchObject([
      { ...attribution, action: 'items.delete', details: { partition: 0, ids, removed: 1 } },
    ])
    const before = await storage.listAudit({ countMax: 1 })
    await engine.deleteItems('orders', 0, ids, ann)
    expect(await storage.listAudit({ countMax: 1 })).toEqual(before)
  })

  it('each step of a clear has an audit row with its count, also when a later step fails', async () => {
    const { engine, storage } = await open()
    const what = { isWaiting: true, isScheduled: false, isLeased: false }
    for (let times = 0; times < 5; times++) await engine.produce('orders', newItems(500))
    const writes = watchWrites(storage)
    expect(await engine.clear('orders', what, ann)).toEqual({ removed: 2_500, discarded: 0 })
    expect(writes()).toEqual(['clear', 'clear', 'clear'])
    const attribution = { actor: 'ann', target: 'orders', reason: 'test data', requestId: 'r1' }
    expect(await storage.listAudit({ countMax: 3 })).toMatchObject(
      [500, 1_000, 1_000].map((removed) => ({
        ...attribution,
        action: 'queue.clear',
        details: { ...what, removed },
      })),
    )
    const before = await storage.listAudit({ countMax: 1 })
    expect(await engine.clear('orders', what, ann)).toEqual({ removed: 0, discarded: 0 })
    expect(await storage.listAudit({ countMax: 1 })).toEqual(before)

    for (let times = 0; times < 5; times++) await engine.produce('orders', newItems(500))
    failFrom(storage, 'clear', 2)
    await expect(engine.clear('orders', what, ann)).rejects.toThrow('the store is gone')
    expect((await engine.readStats('orders')).partitions).toMatchObject([{ waiting: 1_500 }])
    expect(await storage.listAudit({ countMax: 1 })).toMatchObject([
      { action: 'queue.clear', details: { removed: 1_000 } },
    ])
  })

  it('imports in steps, and returns the results in order', async () => {
    const { engine, storage, lease } = await open()
    const given = elsewhere(2_500, (index) => index % 2_400)
    const writes = watchWrites(storage)
    const waiting = lease('a', 1_000)
    const imported = await engine.importItems('orders', 0, given, ann)
    expect(writes().filter((ops) => ops !== 'lease')).toEqual(['import audit', 'import', 'import', 'audit'])
    expect(imported.map(({ id }) => id === null)).toEqual(given.map((_, index) => index >= 2_400))
    const stored = await engine.listItems({ queue: 'orders', countMax: 3_000 })
    expect(stored.map(({ id }) => id)).toEqual(imported.flatMap(({ id }) => id ?? []))
    expect(toTexts(stored)).toEqual(toTexts(given.slice(0, 2_400)))
    expect(toTexts((await waiting).items)).toEqual(toTexts(given.slice(0, 1_000)))
    expect(await storage.listAudit({ countMax: 2 })).toMatchObject([
      { action: 'items.imported', details: { partition: 0, items: 2_500, stored: 2_400 } },
      { action: 'items.import', details: { partition: 0, items: 2_500 } },
    ])
  })

  it('an import that fails half-way has stored the first items, and a repeat stores the rest', async () => {
    const { engine, storage, lease } = await open()
    const given = elsewhere(2_500)
    const restore = failFrom(storage, 'import', 3)
    await expect(engine.importItems('orders', 0, given)).rejects.toThrow('the store is gone')
    const listed = async () => toTexts(await engine.listItems({ queue: 'orders', countMax: 3_000 }))
    expect(await listed()).toEqual(toTexts(given.slice(0, 2_000)))
    // The stored items can be leased, although their import failed.
    expect((await lease('a', 10)).items).toHaveLength(10)
    restore()
    const again = await engine.importItems('orders', 0, given)
    expect(again.map(({ id }) => id === null)).toEqual(given.map((_, index) => index < 2_000))
    expect(await listed()).toEqual(toTexts(given))
  })

  it('imports nothing if one of the items is invalid', async () => {
    const { engine } = await open()
    const given = [...elsewhere(1_500), { payload: bytes('bad'), kind: 'a\0b' }]
    await expect(engine.importItems('orders', 0, given)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(engine.importItems('orders', 7, given.slice(0, 1_500))).rejects.toMatchObject({
      code: 'PARTITION_NOT_FOUND',
    })
    expect(await engine.listItems({ queue: 'orders', countMax: 9 })).toEqual([])
  })
})

/** Items as another system exports them. */
function elsewhere(count: number, sourceOf = (index: number) => index) {
  return Array.from({ length: count }, (_, index) => ({
    payload: bytes(`item-${index}`),
    sourceId: `source-${sourceOf(index)}`,
  }))
}

/** Records the commands written from now on, one text per transaction. */
function watchWrites(storage: Storage): () => readonly string[] {
  const seen: string[] = []
  const write = storage.write.bind(storage)
  storage.write = (commands) => {
    seen.push(commands.map(({ op }) => op).join(' '))
    return write(commands)
  }
  return () => seen
}

/** The store fails from its `count`th command of that kind. */
function failFrom(storage: Storage, op: string, count: number): () => void {
  const write = storage.write.bind(storage)
  let seen = 0
  storage.write = async (commands) => {
    if (commands.some((command) => command.op === op) && ++seen >= count) throw new Error('the store is gone')
    return write(commands)
  }
  return () => {
    storage.write = write
  }
}
