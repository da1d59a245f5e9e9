/** Reads of letters with all, some or none of their bytes, and the byte limit of a page. */

import { expect, it } from 'vitest'
import { headBytes, pageBytesMax } from '../../../src/storage/contract/letters.ts'
import { bytes, minute, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { type LettersQuery, listArchivedLetters, listLetters } from '../support/list-letters.ts'
import { describeStores } from '../support/test-stores.ts'

const megabyte = 2 ** 20
const long = new Uint8Array(headBytes + 1).map((_, at) => at % 251)

describeStores('the bytes of letters', (given) => {
  const actions = createLetterActions(given)
  const list = async (query: Partial<LettersQuery>) =>
    listLetters(given.storage, {
      filter: {},
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: 100,
      examinedMax: 1_000,
      bytes: 'all',
      ...query,
    })
  const listPages = async (query: Partial<LettersQuery>) => {
    const pages = [await list(query)]
    for (let next = pages[0]?.next ?? null; next !== null; ) {
      const page = await list({ ...query, after: next })
      pages.push(page)
      next = page.next
    }
    for (const page of pages) expect(page.examinedCount).toBe(page.letters.length)
    return pages
  }
  const some = [
    aLetter({ payload: long, key: bytes('key'), headers: [['h', bytes('v')]], deadLetteredAt: noon }),
    aLetter({ payload: long.subarray(0, headBytes), deadLetteredAt: noon + minute }),
    aLetter({ payload: bytes('{"a":1}'), deadLetteredAt: noon + 2 * minute }),
    aLetter({ payload: new Uint8Array(), deadLetteredAt: noon + 3 * minute }),
  ]
  const heads = [
    { payload: long.slice(0, headBytes), payloadBytes: headBytes + 1, key: bytes('key'), headers: [] },
    { payload: long.slice(0, headBytes), key: null, headers: [] },
    { payload: bytes('{"a":1}'), key: null, headers: [] },
    { payload: new Uint8Array(), key: null, headers: [] },
  ]

  it('the size of payloads is returned without reading them', async () => {
    const ids = await actions.capture(await given.queue(), some)
    const [unknown, odd] = ['0ujtsYcgvSTl8PAuAdqWYSMnLOv', 'no id']
    expect(await given.storage.readPayloadSizes([unknown, odd, ...ids])).toEqual(
      ids.map((letterId, index) => ({ letterId, payloadBytes: some[index]?.payload.length })),
    )
    expect(await given.storage.readPayloadSizes([])).toEqual([])
    expect(await given.storage.readPayloadSizes(ids, 'archive')).toEqual([])
  })

  it('a head read returns the beginning and the size of the payload', async () => {
    const queue = await given.queue()
    const ids = await actions.capture(queue, some)
    const page = await list({ filter: { queues: [queue] }, bytes: 'head' })
    expect(page.letters).toMatchObject(heads)
    expect(page.letters.map(({ payloadBytes }) => payloadBytes)).toEqual([
      headBytes + 1,
      undefined,
      undefined,
      undefined,
    ])
    expect(await given.storage.getLetters(ids, 'head')).toEqual(page.letters)
    expect((await given.storage.getLetters(ids)).map(({ payload }) => payload)).toEqual(
      some.map(({ payload }) => payload),
    )
    const wide = new TextEncoder().encode(`{"a":2,"b":"${'x'.repeat(headBytes)}"}`)
    await actions.capture(queue, [aLetter({ payload: wide, headers: [['h', bytes('v')]] })])
    const searched = await list({
      filter: { json: { path: ['a'], value: { number: '2' } }, header: { name: 'h' } },
      bytes: 'head',
    })
    expect(searched.letters).toMatchObject([
      { payload: wide.slice(0, headBytes), payloadBytes: wide.length, headers: [] },
    ])
  })

  it('a head read returns no header except the first traceparent', async () => {
    const queue = await given.queue()
    const parent = bytes('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
    const headers = [
      ['["traceparent","', bytes('a name')],
      ['traceparent', null],
      ['traceparent', parent],
      ['traceparent', bytes('second')],
    ] as const
    const ids = await actions.capture(queue, [
      aLetter({ headers, deadLetteredAt: noon }),
      aLetter({ headers: [['traceparent', bytes('short')]], deadLetteredAt: noon + minute }),
      aLetter({ headers: [['traceparent', bytes('')]], deadLetteredAt: noon + 2 * minute }),
      aLetter({ headers: [['Traceparent', parent]], deadLetteredAt: noon + 3 * minute }),
    ])
    const expected = [
      [['traceparent', parent]],
      [['traceparent', bytes('short')]],
      [['traceparent', bytes('')]],
      [],
    ]
    const read = await given.storage.getLetters(ids, 'head')
    expect(read.map((letter) => letter.headers)).toEqual(expected)
    for (const filter of [{ queues: [queue] }, { queues: [queue], header: { name: 'traceparent' } }]) {
      const { letters: found } = await list({ filter, bytes: 'head' })
      const wanted = ids.map((id, at) => [id, expected[at]])
      for (const { rootId, headers: listed } of found) expect(wanted).toContainEqual([rootId, listed])
      expect(found.length).toBe('header' in filter ? 3 : 4)
    }
  })

  it('a head read works for archived letters', async () => {
    const queue = await given.queue()
    const ids = await actions.capture(queue, some)
    await actions.discard(ids, noon)
    await given.run({ op: 'archive', queue, endedBefore: noon + 1, countMax: 10, now: noon })
    const listed = await listArchivedLetters(given.storage, { queues: [queue], countMax: 10 })
    expect(listed.map(({ item }) => item.payloadBytes ?? item.payload.length).toSorted()).toEqual([
      0,
      headBytes,
      headBytes + 1,
      7,
    ])
    expect(await given.storage.readPayloadSizes(ids)).toEqual([])
    expect(await given.storage.readPayloadSizes([...ids, 'no id'], 'archive')).toEqual(
      ids.map((letterId, index) => ({ letterId, payloadBytes: some[index]?.payload.length })),
    )
    const [whole] = await given.storage.getArchivedLetters(ids.slice(0, 1))
    expect(whole?.item.payload).toEqual(long)
  })

  it('a page of whole letters ends at its byte limit, and the next continues', async () => {
    const queue = await given.queue()
    const sizes = [1, 5 * megabyte, 5 * megabyte, 7 * megabyte, 1, 20 * megabyte, 1, 2]
    for (const [at, size] of sizes.entries()) {
      await actions.capture(queue, [
        aLetter({ payload: new Uint8Array(size), deadLetteredAt: noon + at * minute }),
      ])
    }
    for (const isDescending of [false, true]) {
      const pages = (await listPages({ filter: { queues: [queue] }, isDescending })).map(({ letters }) =>
        letters.map(({ payload }) => payload.length),
      )
      expect(pages.flat()).toEqual(isDescending ? sizes.toReversed() : sizes)
      for (const page of pages) {
        const before = page.slice(0, -1).reduce((sum, size) => sum + size, 0)
        expect(before, JSON.stringify(pages)).toBeLessThan(pageBytesMax)
      }
    }
    const heads = (await listPages({ filter: { queues: [queue] }, bytes: 'head' })).flatMap(
      (page) => page.letters,
    )
    expect(heads.map(({ payload, payloadBytes }) => payloadBytes ?? payload.length)).toEqual(sizes)
  })
})
