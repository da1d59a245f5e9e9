import { describe, expect, it } from 'vitest'
import type { Header } from '../../../src/core/items/item.ts'
import { instantMax, instantMin } from '../../../src/core/time/instant.ts'
import type { ItemToImport, NewItem } from '../../../src/storage/contract/items.ts'
import { aFailure, aNewItem, anOrigin, bytes, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
/** Not decodable as UTF-8 or JSON. */
const invalid = new Uint8Array([0xc3, 0x28, 0x00, 0xff, 0xfe, 0x80])

describeStores('stored values', (given) => {
  const produce = async (queue: string, items: readonly NewItem[]) =>
    given.run({ op: 'produce', queue, partition: 0, items, now: noon })
  const importTo = async (queue: string, items: readonly ItemToImport[]) =>
    given.run({ op: 'import', queue, partition: 0, items, now: noon })
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 100 })
  const same = (left: Uint8Array | null | undefined, right: Uint8Array) =>
    left instanceof Uint8Array && Buffer.compare(left, right) === 0

  it.each([
    ['every byte value', everyByte],
    ['none', new Uint8Array()],
    ['one zero', new Uint8Array([0])],
    ['what is no text', invalid],
    ['text in any script', bytes('“ä” 注文 🧾\0\u{10FFFF}')],
  ])('payload, key and headers are kept byte for byte: %s', async (_, data) => {
    const queue = await given.queue()
    await produce(queue, [{ payload: data, key: data, headers: [['h', data]] }])
    const [leased] = await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    const [listed] = await list(queue)
    for (const item of [leased, listed]) {
      expect(same(item?.payload, data)).toBe(true)
      expect(same(item?.key, data)).toBe(true)
      expect(item?.headers.map(([name]) => name)).toEqual(['h'])
      expect(same(item?.headers[0]?.[1], data)).toBe(true)
    }
  })

  it('a view into a larger buffer stores only its own bytes', async () => {
    const queue = await given.queue()
    const view = everyByte.subarray(65, 70)
    await produce(queue, [{ payload: view, key: view, headers: [['h', view]] }])
    const [item] = await list(queue)
    for (const data of [item?.payload, item?.key, item?.headers[0]?.[1]]) expect(same(data, view)).toBe(true)
  })

  it('a caller may overwrite its buffer after the write', async () => {
    const queue = await given.queue()
    const payload = bytes('before')
    await produce(queue, [{ payload }])
    payload.fill(0)
    expect(await list(queue)).toMatchObject([{ payload: bytes('before') }])
  })

  it('a payload of 16 MiB is accepted', async () => {
    const queue = await given.queue()
    const payload = new Uint8Array(16 * 1024 * 1024)
    for (let at = 0; at < payload.length; at++) payload[at] = (at * 31 + (at >> 8)) & 0xff
    await produce(queue, [{ payload }])
    const [item] = await list(queue)
    expect(same(item?.payload, payload)).toBe(true)
  })

  it('an empty key differs from no key', async () => {
    const queue = await given.queue()
    await produce(queue, [
      aNewItem({ key: new Uint8Array() }),
      aNewItem({ key: null }),
      aNewItem(),
      aNewItem({ key: bytes('null') }),
    ])
    expect((await list(queue)).map((item) => item.key)).toEqual([new Uint8Array(), null, null, bytes('null')])
  })

  it('headers keep order, repeated names, empty and missing values', async () => {
    const queue = await given.queue()
    const headers: Header[] = [
      ['b', bytes('1')],
      ['a', bytes('2')],
      ['b', bytes('3')],
      ['b', bytes('1')],
      ['', bytes('no name')],
      ['B', new Uint8Array()],
      ['absent', null],
      ['__proto__', bytes('p')],
      ['“ä” 注文 🧾', invalid],
    ]
    await produce(queue, [aNewItem({ headers }), aNewItem({ headers: [] }), aNewItem()])
    expect((await list(queue)).map((item) => item.headers)).toEqual([headers, [], []])
  })

  it('bytes survive a move to a dead queue and a retry', async () => {
    const letters = await given.queue()
    const queue = await given.queue({ deadQueue: letters })
    const headers: Header[] = [
      ['b', invalid],
      ['a', null],
      ['b', everyByte],
    ]
    const { ids } = await produce(queue, [{ payload: invalid, key: everyByte, headers }])
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    const back = { id: ids[0] ?? '', availableAt: null, isDead: false, error: null }
    const settled = await given.run({ op: 'retry', queue, partition: 0, items: [back], now: noon })
    expect(await list(queue)).toMatchObject([{ payload: invalid, key: everyByte, headers }])
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    const id = settled.isSettled ? (settled.changes[0]?.id ?? '') : ''
    await given.run({ op: 'retry', queue, partition: 0, items: [{ ...back, id, isDead: true }], now: noon })
    expect(await list(letters)).toMatchObject([{ payload: invalid, key: everyByte, headers }])
  })

  describe('texts', () => {
    const texts = [
      '',
      ' ',
      '“ä” 注文 🧾',
      "'; drop table item; --",
      '\\x00 \\0 %00',
      '\n\r\t\u{7f}',
      '\u{FEFF}\u{10FFFF}',
    ]

    it.each(texts)('texts are read as they were written: %j', async (text) => {
      const queue = await given.queue({ reference: text })
      const item = {
        kind: text,
        encoding: text,
        reference: text,
        sourceId: `${text}!`,
        letterId: text,
      } as const
      const origin = anOrigin({ name: text, id: text, group: text, cluster: text })
      const failure = aFailure({
        errorCode: text,
        errorClass: text,
        message: text,
        stack: text,
        worker: text,
      })
      const lease = { holder: text, deadline: noon }
      await importTo(queue, [{ payload: bytes('x'), ...item, origin, failure, lease }])
      expect(await list(queue)).toMatchObject([{ ...item, origin, failure, lease }])
      expect((await given.storage.getQueue(queue))?.reference).toBe(text)
    })

    const unfit: [string, Partial<ItemToImport>][] = ['a\0b', 'a\ud83d'].flatMap((text) => [
      ['kind', { kind: text }],
      ['encoding', { encoding: text }],
      ['reference', { reference: text }],
      ['source id', { sourceId: text }],
      ['letter id', { letterId: text }],
      ['lease holder', { lease: { holder: text, deadline: noon } }],
    ])
    it.each(unfit)('texts that not every store can keep are refused: %s', async (_, changes) => {
      const queue = await given.queue()
      const good = { payload: bytes('good') }
      await expectRefusal(importTo(queue, [good, { ...good, ...changes }]), 'BAD_REQUEST')
      expect(await list(queue)).toEqual([])
    })

    it('failure texts are kept with any characters, NUL included', async () => {
      const queue = await given.queue()
      const text = 'a\0b \\u0000'
      const failure = aFailure({
        errorCode: text,
        errorClass: text,
        message: text,
        stack: text,
        worker: text,
      })
      const origin = anOrigin({ name: text, id: text, group: text, cluster: text })
      await importTo(queue, [{ payload: bytes('x'), failure, origin, headers: [[text, bytes('v')]] }])
      expect(await list(queue)).toMatchObject([{ failure, origin, headers: [[text, bytes('v')]] }])

      const [leased] = await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
      const item = {
        id: leased?.id ?? '',
        availableAt: null,
        isDead: false,
        error: { message: 'bad \0 byte' },
      }
      const settled = await given.run({ op: 'retry', queue, partition: 0, items: [item], now: noon })
      expect(settled.isSettled).toBe(true)
      expect(await list(queue)).toMatchObject([{ state: 'waiting', failure: { message: 'bad \0 byte' } }])
    })

    it('NUL characters are refused in queue names, holders, audit rows and locks', async () => {
      const queue = await given.queue()
      await produce(queue, [aNewItem()])
      const entry = {
        at: noon,
        actor: 'a',
        action: 'b',
        target: 'c\0',
        reason: '',
        requestId: '',
        details: {},
      }
      const lock = { name: 'a\0b', owner: 'x', now: noon, deadline: noon + 1 }
      await expectRefusal(
        given.run({ op: 'create-queue', queue: { name: 'a\0b' }, now: noon }),
        'BAD_REQUEST',
      )
      await expectRefusal(
        given.run({ op: 'lease', queue, partition: 0, holders: ['a\0b'], now: noon }),
        'BAD_REQUEST',
      )
      await expectRefusal(given.run({ op: 'audit', entries: [entry] }), 'BAD_REQUEST')
      await expectRefusal(given.run({ op: 'acquire-lock', ...lock }), 'BAD_REQUEST')
    })
  })

  it('times keep their microseconds', async () => {
    const queue = await given.queue({ expireTimeoutUs: 1_234_567 })
    const now = noon + 123_457
    await given.run({ op: 'produce', queue, partition: 0, items: [aNewItem()], now })
    expect(await list(queue)).toMatchObject([
      { createdAt: now, updatedAt: now, expireDeadline: now + 1_234_567 },
    ])
  })

  it.each([
    ['before 1970', -1],
    ['at 1970', 0],
    ['the largest there is', instantMax],
    ['the smallest there is', instantMin],
  ])('times far in the past or future are kept: %s', async (_, instant) => {
    const queue = await given.queue()
    const origin = anOrigin({ createdAt: instant })
    const failure = aFailure({ firstFailedAt: instant, lastFailedAt: instant })
    const item = { payload: bytes('x'), expireDeadline: instant, origin, failure, deadLetteredAt: instant }
    await importTo(queue, [item])
    expect(await list(queue)).toMatchObject([item])
    const byDeath = await given.storage.listItems({ queue, order: 'deadLetteredAt', countMax: 1 })
    expect(byDeath).toMatchObject([{ deadLetteredAt: instant }])
  })

  it('the deadline of items that never expire does not exceed the largest instant', async () => {
    const queue = await given.queue({ expireTimeoutUs: instantMax, leaseTimeoutUs: instantMax })
    await produce(queue, [aNewItem()])
    const [item] = await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    for (const time of [item?.expireDeadline, item?.lease.deadline]) {
      expect(Number.isSafeInteger(time)).toBe(true)
      expect(time).toBeGreaterThan(noon)
    }
    expect(await list(queue)).toEqual([item])
    expect((await given.run({ op: 'advance', now: noon + 1, countMax: 10 })).changes).toEqual([])
  })
})
