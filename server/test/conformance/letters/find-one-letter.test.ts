/** A letter is found by every id that it ever had, by its source, reference and trace, and by its payload. */
import { expect, it } from 'vitest'
import type { Item } from '../../../src/core/items/item.ts'
import { searchedPayloadMax } from '../../../src/storage/shared/letters/match-letter.ts'
import { anOrigin, bytes, hour, minute, newItems, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { lettersByReference } from '../support/letters-by-reference.ts'
import { findArchivedLetters } from '../support/list-letters.ts'
import { undecodableBytes } from '../support/read-letter-pages.ts'
import { describeStores } from '../support/test-stores.ts'

const traceOne = '0af7651916cd43dd8448eb211c80319c'
const traceTwo = '11111111111111111111111111111111'
const traceparent = (traceId: string, version = '00') => bytes(`${version}-${traceId}-b7ad6b7169203331-01`)

describeStores('one letter', (given) => {
  const actions = createLetterActions(given)
  const { list, findReferences, captureByReference } = lettersByReference(given)
  const lettersOf = async (id: string) =>
    (await given.storage.findLetterIds([id])).map(({ letterId }) => letterId)

  /** Produces an item, and lets it fail `retries` times before it dies. Returns all ids that it had. */
  const dieAfter = async (work: string, retries: number, delayUs = 0) => {
    const { ids } = await given.run({
      op: 'produce',
      queue: work,
      partition: 0,
      items: newItems(1),
      now: noon,
    })
    const had = [...ids]
    let now = noon
    for (let retry = 0; retry < retries; retry++) {
      const item = await actions.leaseOne({ queue: work, partition: 0 }, now)
      had.push(item.id)
      const availableAt = delayUs === 0 ? null : now + delayUs
      const items = [{ id: item.id, availableAt, isDead: false, error: null }]
      await given.run({ op: 'retry', queue: work, partition: 0, items, now })
      now += delayUs + 1
      await given.run({ op: 'advance', now, countMax: 10 })
    }
    const last = await actions.leaseOne({ queue: work, partition: 0 }, now)
    had.push(last.id)
    const settled = await actions.declareDead(last, undefined, now)
    const letterId: string = settled.isSettled ? (settled.changes[0]?.id ?? '') : ''
    return { ids: [...new Set(had)], letterId }
  }

  it('a letter is found by the id that produce answered and by the id of each attempt', async () => {
    const { work } = await actions.createQueues({ attemptsMax: 100 })
    const { ids, letterId } = await dieAfter(work, 3)
    expect(ids).toHaveLength(4)
    for (const id of ids) expect(await lettersOf(id), id).toEqual([letterId])
    expect(await given.storage.findLetterIds(ids)).toHaveLength(4)
    expect(await lettersOf('0'.repeat(27))).toEqual([])
    expect(await given.storage.findLetterIds([])).toEqual([])
  })

  it('a letter is found by its earlier ids also if its retries were delayed', async () => {
    const { work } = await actions.createQueues({ attemptsMax: 100 })
    const { ids, letterId } = await dieAfter(work, 2, minute)
    expect(ids).toHaveLength(3)
    for (const id of ids) expect(await lettersOf(id), id).toEqual([letterId])
  })

  it('a letter is found by the ids of its redrives, of their attempts, and by its own later ids', async () => {
    const { work, letters, letterId, sent } = await actions.redriveNewLetter({ attemptsMax: 100 })
    expect(await lettersOf(sent.id)).toEqual([letterId])
    await actions.retryLater(await actions.leaseOne(sent))
    const again = await actions.leaseOne({ queue: work, partition: 0 })
    expect(again.id).not.toBe(sent.id)
    expect(await lettersOf(again.id)).toEqual([letterId])
    await actions.declareDead(again)
    const second = await actions.redriveOne(letterId)
    for (const id of [sent.id, again.id, second.id]) expect(await lettersOf(id), id).toEqual([letterId])
    await actions.complete(await actions.leaseOne(second))
    expect(await lettersOf(second.id)).toEqual([letterId])

    const [other = ''] = await actions.produceDead(work, newItems(1))
    await actions.retryLater(await actions.leaseOne({ queue: letters, partition: 0 }))
    const { id } = await actions.readLetter(other)
    expect(id).not.toBe(other)
    expect(await lettersOf(id)).toEqual([other])
  })

  it('the ids of a letter stay in the archive and after a restore, and leave with the letter', async () => {
    const { work, letters } = await actions.createQueues({ attemptsMax: 100 })
    const archive = (now: number) =>
      given.run({ op: 'archive', queue: letters, endedBefore: now, countMax: 10, now })
    const purge = (now: number) =>
      given.run({ op: 'purge-archive', queue: letters, archivedBefore: now, countMax: 10 })
    const { ids, letterId } = await dieAfter(work, 1)
    await actions.discard([letterId])
    await archive(noon + hour)
    for (const id of ids) expect(await lettersOf(id), id).toEqual([letterId])
    await given.run({ op: 'restore', letterIds: [letterId], now: noon + hour })
    for (const id of ids) expect(await lettersOf(id), id).toEqual([letterId])
    await actions.discard([letterId], noon + hour)
    await archive(noon + 2 * hour)
    await purge(noon + 3 * hour)
    for (const id of ids) expect(await lettersOf(id), id).toEqual([])

    const deleted = await dieAfter(work, 1)
    // Open letters are not deleted, but a resolved letter is.
    await actions.complete(await actions.leaseOne(await actions.redriveOne(deleted.letterId)))
    const { id, partition } = await actions.readLetter(deleted.letterId)
    await given.run({ op: 'delete', queue: letters, partition, ids: [id] })
    for (const each of deleted.ids) expect(await lettersOf(each), each).toEqual([])

    const removed = await dieAfter(work, 1)
    await given.run({ op: 'update-queue', name: work, changes: { deadQueue: null }, now: noon })
    await given.run({ op: 'delete-queue', name: letters, isForced: true })
    for (const each of removed.ids) expect(await lettersOf(each), each).toEqual([])
  })

  it('an item that is moved twice has one letter, and its ids lead to that letter', async () => {
    const { work, letters } = await actions.createQueues({ attemptsMax: 100 })
    const { ids } = await given.run({
      op: 'produce',
      queue: work,
      partition: 0,
      items: newItems(1),
      now: noon,
    })
    await actions.retryLater(await actions.leaseOne({ queue: work, partition: 0 }))
    const item = await actions.leaseOne({ queue: work, partition: 0 })
    // The letter of an earlier move of the same item.
    const [existing = ''] = await actions.capture(letters, [aLetter({ sourceId: item.id })])
    await actions.declareDead(item)
    expect(await lettersOf(item.id)).toEqual([existing])
    expect(await lettersOf(ids[0] ?? '')).toEqual([])
  })

  it('letters are found by letter id, source id and reference, live and archived, in every order', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    const [a = '', b = ''] = await captureByReference(one, {
      a: { sourceId: 's-1', deadLetteredAt: noon + 2 },
      b: { sourceId: 's-2', deadLetteredAt: noon + 1 },
    })
    const [c = ''] = await captureByReference(two, { c: { sourceId: 's-1', deadLetteredAt: noon } })
    await actions.capture(two, [aLetter({ sourceId: 's-3', reference: '' })])
    expect(await findReferences({ letterIds: [a, c, '0'.repeat(27), 'no id'] })).toEqual(['a', 'c'])
    expect(await findReferences({ letterIds: [] })).toEqual([])
    expect(await findReferences({ sourceIds: ['s-1', 'none'] })).toEqual(['a', 'c'])
    expect(await findReferences({ sourceIds: ['s-1'], queues: [two] })).toEqual(['c'])
    expect(await findReferences({ references: ['a', 'b', 'b', 'none'] })).toEqual(['a', 'b'])
    expect(await findReferences({ references: [''] })).toEqual([''])
    expect(await findReferences({ references: ['a'.repeat(150)] })).toEqual([])
    for (const order of ['deadLetteredAt', 'updatedAt'] as const) {
      const filter = { letterIds: [a, b, c] }
      const page = await list({ filter, order, countMax: 2, isDescending: true })
      const rest = await list({ filter, order, isDescending: true, ...(page.next && { after: page.next }) })
      const found = [...page.letters, ...rest.letters]
      expect(found.map(({ rootId }) => rootId).toSorted()).toEqual([a, b, c].toSorted())
      if (order === 'deadLetteredAt') expect(found.map(({ reference }) => reference)).toEqual(['a', 'b', 'c'])
    }
    await actions.discard([a, b])
    await given.run({ op: 'archive', queue: one, endedBefore: noon + 1, countMax: 10, now: noon })
    const findArchived = async (filter: Parameters<typeof findArchivedLetters>[1]['filter']) => {
      const page = await findArchivedLetters(given.storage, { filter, countMax: 10, examinedMax: 100 })
      return page.letters.map(({ item }) => item.reference).toSorted()
    }
    expect(await findArchived({ letterIds: [a, c] })).toEqual(['a'])
    expect(await findArchived({ sourceIds: ['s-1', 's-2'] })).toEqual(['a', 'b'])
    expect(await findArchived({ references: ['b', 'c'] })).toEqual(['b'])
    expect(await lettersOf('s-1')).toHaveLength(2)
  })

  it('letters with different references that begin alike are found one by one', async () => {
    const queue = await given.queue()
    const [long, other] = [`${'r'.repeat(120)}1`, `${'r'.repeat(120)}2`]
    await actions.capture(queue, [aLetter({ reference: long }), aLetter({ reference: other })])
    expect(await findReferences({ references: [long] })).toEqual([long])
  })

  it('letters are found by the trace id of their header traceparent, live and archived', async () => {
    const queue = await given.queue()
    const [a = ''] = await captureByReference(queue, {
      a: {
        headers: [
          ['x', null],
          ['traceparent', traceparent(traceOne)],
        ],
      },
      b: { headers: [['traceparent', traceparent(traceOne)]], deadLetteredAt: noon + hour },
      c: { headers: [['traceparent', traceparent(traceTwo)]] },
      d: { headers: [['x"traceparent', traceparent(traceOne)]] },
      e: { headers: [['traceparent', null]] },
      f: { headers: [['traceparent', undecodableBytes]] },
      g: { headers: [['traceparent', traceparent(traceOne, 'ff')]] },
      h: {},
    })
    expect(await findReferences({ traceIds: [traceOne] })).toEqual(['a', 'b'])
    expect(await findReferences({ traceIds: [traceOne, traceTwo] })).toEqual(['a', 'b', 'c'])
    expect(await findReferences({ traceIds: [traceOne], died: { from: noon + minute } })).toEqual(['b'])
    expect(await findReferences({ traceIds: ['2'.repeat(32)] })).toEqual([])
    const byChange = await list({ filter: { traceIds: [traceOne] }, order: 'updatedAt' })
    expect(byChange.letters).toHaveLength(2)
    await actions.discard([a])
    await given.run({ op: 'archive', queue, endedBefore: noon + 1, countMax: 10, now: noon })
    const archived = await findArchivedLetters(given.storage, {
      filter: { traceIds: [traceOne] },
      countMax: 10,
      examinedMax: 100,
    })
    expect(archived.letters.map(({ item }) => item.reference)).toEqual(['a'])
  })

  it('letters are found by text in their payload, in any case, whatever their bytes', async () => {
    const queue = await given.queue()
    const between = Buffer.concat([undecodableBytes, bytes('Order-4711\u00df\\"x"'), undecodableBytes])
    await captureByReference(queue, {
      a: { payload: bytes('{"order":"ORDER-4711"}') },
      b: { payload: between },
      c: { payload: bytes('order 4711') },
      d: { payload: bytes('\u212aelvin \u0130stanbul GRÖSSE') },
      e: { payload: new Uint8Array() },
      f: { payload: bytes('100% \\ "quoted" _') },
    })
    expect(await findReferences({ payloadText: 'order-4711' })).toEqual(['a', 'b'])
    expect(await findReferences({ payloadText: 'ORDER' })).toEqual(['a', 'b', 'c'])
    expect(await findReferences({ payloadText: '4711ß' })).toEqual(['b'])
    expect(await findReferences({ payloadText: 'kelvin' })).toEqual(['d'])
    expect(await findReferences({ payloadText: 'größe' })).toEqual([])
    expect(await findReferences({ payloadText: 'grösse' })).toEqual(['d'])
    expect(await findReferences({ payloadText: '100% \\ "QUOTED" _' })).toEqual(['f'])
    expect(await findReferences({ payloadText: '\\"x"' })).toEqual(['b'])
    expect(await findReferences({ payloadText: 'order', queues: ['none'] })).toEqual([])
    const { letters } = await list({ filter: { payloadText: 'order-4711' }, bytes: 'none' })
    expect(letters.map(({ payload }: Item) => payload.length)).toEqual([0, 0])
  })

  it('a search in payloads reads a bounded part of each payload, and continues from a cursor', async () => {
    const queue = await given.queue()
    const large = Buffer.alloc(searchedPayloadMax + 100, 'x')
    large.write('needle', searchedPayloadMax - 6)
    const beyond = Buffer.alloc(searchedPayloadMax + 100, 'x')
    beyond.write('needle', searchedPayloadMax + 10)
    await captureByReference(queue, {
      a: { payload: large, deadLetteredAt: noon + 3 },
      b: { payload: beyond, deadLetteredAt: noon + 2 },
      c: { payload: bytes('a needle'), deadLetteredAt: noon + 1 },
    })
    const found: string[] = []
    let examined = 0
    for (let after: { value: number; id: string } | null | undefined; after !== null; ) {
      const filter = { payloadText: 'NEEDLE' }
      const page = await list({ filter, examinedMax: 1, isDescending: true, ...(after && { after }) })
      found.push(...page.letters.map(({ reference }) => reference))
      examined += page.examinedCount
      after = page.next
    }
    expect([found, examined]).toEqual([['a', 'c'], 3])
  })

  it('a letter from another system is found by its source id also with other conditions', async () => {
    const queue = await given.queue()
    const origin = anOrigin({ kind: 'kafka', name: 'orders', id: '42' })
    await captureByReference(queue, { a: { sourceId: 'c/orders/0/42/g', origin } })
    expect(await findReferences({ sourceIds: ['c/orders/0/42/g'], origins: ['orders'] })).toEqual(['a'])
    expect(await findReferences({ sourceIds: ['c/orders/0/42/g'], states: ['dead'] })).toEqual([])
    expect(await findReferences({ sourceIds: ['c/orders/0/42/g'], text: 'nothing' })).toEqual([])
  })
})
