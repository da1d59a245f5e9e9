import { expect, it } from 'vitest'
import { aNewItem, bytes, minute, newItems, noon, toText } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('producing with a key', (given) => {
  const produce = (queue: string, key: string, prefix: string, now = noon, partition = 0) =>
    given.run({
      op: 'produce',
      queue,
      partition,
      items: newItems(2, prefix),
      now,
      once: { key, until: now + minute },
    })
  const payloads = async (queue: string) =>
    (await given.storage.listItems({ queue, countMax: 100 })).map(({ payload }) => toText(payload))

  it('a repeated key within its window stores once and returns the first result', async () => {
    const queue = await given.queue({ partitions: 2 })
    const first = await produce(queue, 'order-1', 'first')
    expect(first).toMatchObject({ isRepeat: false, partition: 0 })
    const repeat = await produce(queue, 'order-1', 'first', noon + minute - 1, 1)
    expect(repeat).toMatchObject({ ids: first.ids, partition: 0, isRepeat: true })
    expect(await payloads(queue)).toEqual(['first-0', 'first-1'])
  })

  it('a key stores again after its window, in another queue, or under another name', async () => {
    const queue = await given.queue()
    const other = await given.queue()
    await produce(queue, 'a', 'first')
    await produce(queue, 'b', 'other key')
    await produce(other, 'a', 'other queue')
    await produce(queue, 'a', 'later', noon + minute)
    expect(await payloads(queue)).toHaveLength(6)
    expect(await payloads(other)).toHaveLength(2)
  })

  it('concurrent calls with one key store once', async () => {
    const queue = await given.queue()
    const answers = await Promise.all(Array.from({ length: 20 }, () => produce(queue, 'k', 'try')))
    expect(answers.filter(({ isRepeat }) => !isRepeat)).toHaveLength(1)
    expect(new Set(answers.map(({ ids }) => ids.join())).size).toBe(1)
    expect(await payloads(queue)).toHaveLength(2)
  })

  it('commands with one key in one list store once', async () => {
    const queue = await given.queue()
    const once = { key: 'k', until: noon + minute }
    const common = { op: 'produce', queue, partition: 0, now: noon, once } as const
    const [first, second] = await given.storage.write([
      { ...common, items: newItems(1, 'first') },
      { ...common, items: newItems(1, 'first') },
    ])
    expect([first.isRepeat, second.isRepeat]).toEqual([false, true])
    expect(second.ids).toEqual(first.ids)
    expect(await payloads(queue)).toEqual(['first-0'])
  })

  it('a key with other items is refused and stores nothing', async () => {
    const queue = await given.queue()
    const once = { key: 'k', until: noon + minute }
    const common = { op: 'produce', queue, partition: 0, now: noon, once } as const
    const item = aNewItem({ payload: bytes('ab'), key: bytes('c'), headers: [['h', bytes('d')]] })
    await given.run({ ...common, items: [item] })
    const others = [
      [{ ...item, payload: bytes('x') }],
      [{ ...item, payload: bytes('a'), key: bytes('bc') }],
      [{ ...item, key: null }],
      [{ ...item, headers: [['other', bytes('d')]] as const }],
      [{ ...item, headers: [] }],
      [{ ...item, priority: 1 }],
      [{ ...item, availableAt: noon + minute }],
      [item, item],
    ]
    for (const items of others) await expectRefusal(given.run({ ...common, items }), 'IDEMPOTENCY_KEY_REUSED')
    // A missing field equals its default.
    const same = { ...item, availableAt: null, priority: 0 }
    expect(await given.run({ ...common, items: [same] })).toMatchObject({ isRepeat: true })
    expect(await payloads(queue)).toEqual(['ab'])
    const later = { ...common, now: noon + minute, once: { key: 'k', until: noon + 2 * minute } }
    expect(await given.run({ ...later, items: others[0] ?? [] })).toMatchObject({ isRepeat: false })
  })

  it('a key is forgotten if its write is undone', async () => {
    const queue = await given.queue()
    const once = { key: 'k', until: noon + minute }
    const common = { op: 'produce', partition: 0, now: noon } as const
    await expect(
      given.storage.write([
        { ...common, queue, once, items: newItems(1) },
        { ...common, queue: 'no such queue', items: newItems(1) },
      ]),
    ).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    expect(await produce(queue, 'k', 'now')).toMatchObject({ isRepeat: false })
  })
})
