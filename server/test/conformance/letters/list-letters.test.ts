/**
 * Lists of letters, page by page. Pages neither repeat nor omit letters, and no letter breaks a page.
 * find-letters.test.ts tests each filter alone; random-letter-filters.test.ts tests random filters and pages.
 */
import { expect, it } from 'vitest'
import { convertToUuid } from '../../../src/core/ids/ksuid.ts'
import type { Item } from '../../../src/core/items/item.ts'
import type { LetterCursor } from '../../../src/storage/contract/letters.ts'
import { aFailure, bytes, minute, newItems, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { captureOneOfEachState, lettersByReference, wholeQuery } from '../support/letters-by-reference.ts'
import { readLetterPages, undecodableBytes } from '../support/read-letter-pages.ts'
import { listAll } from '../support/store-reads.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('a list of letters', (given) => {
  const actions = createLetterActions(given)
  const { list, findReferences, captureByReference } = lettersByReference(given)

  it('a cursor works inside, before and after the requested time range', async () => {
    const queue = await given.queue()
    const named = Object.fromEntries(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((name, at) => [name, { deadLetteredAt: noon + at * minute }]),
    )
    await captureByReference(queue, named)
    const died = { from: noon + minute, until: noon + 4 * minute }
    const from = async (at: number, isDescending: boolean, id = '') => {
      const after = { value: noon + at * minute, id }
      const page = await list({ filter: { queues: [queue], died }, isDescending, after })
      return page.letters.map(({ reference }) => reference).join('')
    }
    const last = 'z'.repeat(27)
    expect(await from(0, false)).toBe('bcde')
    expect(await from(1, false, last)).toBe('cde')
    expect(await from(2, false, last)).toBe('de')
    expect(await from(4, false)).toBe('e')
    expect(await from(5, false)).toBe('')
    expect(await from(5, true)).toBe('edcb')
    expect(await from(4, true)).toBe('dcb')
    expect(await from(4, true, last)).toBe('edcb')
    expect(await from(2, true)).toBe('b')
    expect(await from(0, true)).toBe('')
  })

  it('a list has only letters, of all queues, with all fields', async () => {
    const { names } = await captureOneOfEachState(given)
    const plain = await given.queue()
    await given.run({ op: 'produce', queue: plain, partition: 0, items: newItems(2), now: noon })
    const sourced = [{ payload: bytes('x'), sourceId: 'no letter' }]
    await given.run({ op: 'import', queue: plain, partition: 0, items: sourced, now: noon })
    const { letters, examinedCount } = await list({})
    expect(letters.map(({ reference }) => reference).toSorted()).toEqual(names)
    expect(examinedCount).toBeGreaterThanOrEqual(letters.length)
    for (const letter of letters) {
      expect((await listAll(given.storage, letter.queue)).find(({ id }) => id === letter.id)).toEqual(letter)
      expect(await given.storage.getLetters([letter.rootId])).toEqual([letter])
    }
    const ids = letters.map(({ rootId }) => rootId).toReversed()
    expect(await given.storage.getLetters([...ids, '0'.repeat(27), 'no id'])).toEqual(letters.toReversed())
    expect(await given.storage.getLetters([])).toEqual([])
  })

  it('a list without bytes still filters by bytes', async () => {
    const queue = await given.queue()
    const odd = { payload: bytes('{"a":1}'), key: bytes('k'), headers: [['h', undecodableBytes]] as const }
    await captureByReference(queue, { a: odd, b: {} })
    const filter = { key: bytes('k'), header: { name: 'h' }, json: { path: ['a'], value: { number: '1' } } }
    const [[bare], [full]] = [
      (await list({ filter, bytes: 'none' })).letters,
      (await list({ filter })).letters,
    ]
    const { payload, key, headers, ...rest } = bare as Item
    expect([payload.length, key?.length ?? 0, headers.length]).toEqual([0, 0, 0])
    expect(full).toMatchObject({ ...rest, ...odd })
  })

  it('any payload, key, header or text can be listed', async () => {
    const queue = await given.queue()
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    await captureByReference(queue, {
      a: {
        payload: everyByte,
        key: everyByte,
        headers: [
          ['h', everyByte],
          ['', null],
          ['ü"\\', undecodableBytes],
        ],
      },
      b: { payload: bytes(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) },
      c: { payload: bytes('{"a":"\\u0000"}') },
      d: { payload: bytes('{"a":1e400,"b":12345678901234567890,"b":2}') },
      e: { payload: bytes('{"__proto__":{"a":1},"a":"\\ud800"}') },
      f: { payload: new Uint8Array(200_000).fill(0xff), failure: aFailure({ message: '\u2028 "\\\' %_ ' }) },
      g: { payload: bytes('\ufeff{"a":1}') },
    })
    const all = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    expect(await findReferences({})).toEqual(all)
    expect(await findReferences({ json: { path: ['nothing'], value: 'x' } })).toEqual([])
    expect(await findReferences({ json: { path: ['a', 'b', 0], value: null } })).toEqual([])
    expect(await findReferences({ header: { name: 'h', value: 'x' } })).toEqual([])
    expect(await findReferences({ text: '"\\\' %_' })).toEqual(['f'])
    for (const filter of [{}, { text: 'refused' }, { json: { path: ['a'], value: { number: '7' } } }]) {
      const pages = await readLetterPages(given, { ...wholeQuery, filter, countMax: 2, examinedMax: 3 })
      expect(pages.flat().length).toBe((await findReferences(filter)).length)
    }
  })

  it('pages repeat and omit no letter while letters arrive, change and end', async () => {
    const { work } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(30))
    const seen: string[] = []
    let after: LetterCursor | undefined
    for (let round = 0; ; round++) {
      const page = await list({ countMax: 4, examinedMax: 100, ...(after === undefined ? {} : { after }) })
      seen.push(...page.letters.map(({ rootId }) => rootId))
      if (page.next === null) break
      after = page.next
      if (round > 50) throw new Error('it does not end')
      const [first = ''] = page.letters.map(({ rootId }) => rootId)
      await actions.redriveOne(first, noon + round)
      await actions.discard([seen.at(-1) ?? ''], noon + round)
    }
    expect(seen.toSorted()).toEqual(ids.toSorted())
  })

  it('a list examines up to examinedMax letters and continues from there', async () => {
    const queue = await given.queue()
    const letters = Array.from({ length: 40 }, (_, index) =>
      aLetter({ reference: `${index}`, deadLetteredAt: noon + index, payload: bytes(`{"n":${index}}`) }),
    )
    await actions.capture(queue, letters)
    const filter = { json: { path: ['n'], value: { number: '33' } } }
    const pages = await readLetterPages(given, { ...wholeQuery, filter, examinedMax: 7, countMax: 5 })
    expect(pages.flat()).toHaveLength(1)
    expect(pages.length).toBeGreaterThanOrEqual(6)
  })

  it('live and archived letters are found by UUID, the first 16 bytes of their id', async () => {
    const { work, letters } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(200))
    const uuids = ids.map(convertToUuid)
    expect(new Set(uuids).size).toBe(200)
    expect(uuids).toEqual(ids.map(firstSixteenBytes))
    await actions.discard(ids.slice(0, 100))
    await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 1_000, now: noon })
    const { ids: plain } = await given.run({
      op: 'produce',
      queue: work,
      partition: 0,
      items: newItems(1),
      now: noon,
    })
    const strangers = [convertToUuid(plain[0] ?? ''), '00000000-0000-0000-0000-000000000000']
    const known = await given.storage.findLettersByUuid([...uuids, ...strangers])
    const expected = ids.map((letterId, index) => ({ uuid: uuids[index] ?? '', letterId }))
    const byId = (a: { letterId: string }, b: { letterId: string }) => (a.letterId < b.letterId ? -1 : 1)
    expect(known.toSorted(byId)).toEqual(expected.toSorted(byId))
    expect(await given.storage.findLettersByUuid([])).toEqual([])
  })
})

function firstSixteenBytes(id: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let value = 0n
  for (const digit of id) value = value * 62n + BigInt(digits.indexOf(digit))
  const hex = value.toString(16).padStart(40, '0').slice(0, 32)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
