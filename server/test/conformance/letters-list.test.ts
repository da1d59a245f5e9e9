/**
 * Lists of letters: each filter by itself, and pages. A page neither repeats nor skips, and no letter is so odd that it
 * breaks one. Random filters in random pages: letters-list-by-chance.test.ts.
 */
import { describe, expect, it } from 'vitest'
import type { Item } from '../../src/core/item.ts'
import { ksuidToUuid } from '../../src/core/ksuid.ts'
import type { LetterCursor, LetterFilter, LettersQuery } from '../../src/storage/letter-store.ts'
import type { ImportedItem, ListedState } from '../../src/storage/storage.ts'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon } from '../make.ts'
import { aLetter, letterActs } from './letter-acts.ts'
import { longPrefix, noText, walk } from './letter-pages.ts'
import { listAll } from './store-facts.ts'
import { describeStores, type Given } from './stores.ts'

const whole: LettersQuery = {
  filter: {},
  order: 'diedAt',
  isDescending: false,
  countMax: 1_000,
  lookMax: 10_000,
  bytes: 'all',
}

describeStores('a list of letters', (given) => {
  const acts = letterActs(given)
  const list = async (query: Partial<LettersQuery>) => given.storage.listLetters({ ...whole, ...query })
  /** The names (references) of those that a filter finds, in order. */
  const found = async (filter: LetterFilter): Promise<string[]> => {
    const page = await list({ filter })
    expect(page.next).toBeNull()
    return page.letters.map(({ reference }) => reference).toSorted()
  }
  /** Letters by name, each with what is given. */
  const captureNamed = async (queue: string, letters: Readonly<Record<string, Partial<ImportedItem>>>) =>
    acts.capture(
      queue,
      Object.entries(letters).map(([reference, changes]) => aLetter({ reference, ...changes })),
    )

  it('goes on from a place within the times asked for, before them and after them', async () => {
    const queue = await given.queue()
    const named = Object.fromEntries(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((name, at) => [name, { diedAt: noon + at * minute }]),
    )
    await captureNamed(queue, named)
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

  describe('finds by', () => {
    it('queue', async () => {
      const [one, two] = [await given.queue(), await given.queue()]
      await captureNamed(one, { a: {}, b: {} })
      await captureNamed(two, { c: {} })
      expect(await found({ queues: [one] })).toEqual(['a', 'b'])
      expect(await found({ queues: [one, two] })).toEqual(['a', 'b', 'c'])
      expect(await found({ queues: [two, 'nowhere'] })).toEqual(['c'])
      expect(await found({ queues: [] })).toEqual([])
      expect(await found({})).toEqual(['a', 'b', 'c'])
    })

    it('state', async () => {
      const { names, states } = await oneOfEachState(given)
      for (const [state, name] of Object.entries(states)) {
        expect(await found({ states: [state as ListedState] }), state).toEqual(name)
      }
      expect(await found({ states: ['waiting', 'scheduled', 'dead'] })).toEqual([
        'dead',
        'scheduled',
        'waiting',
      ])
      expect(await found({ states: [] })).toEqual([])
      expect(await found({})).toEqual(names)
    })

    it('group, origin, reason, slug and error class, exactly', async () => {
      const queue = await given.queue()
      const at = (name: string) => ({ origin: anOrigin({ name }) })
      await captureNamed(queue, {
        a: {
          ...at('payments'),
          failure: aFailure({ reason: 'http_503', message: 'HTTP 503: x', errorClass: 'A' }),
        },
        b: {
          ...at('payments'),
          failure: aFailure({ reason: 'http_50', message: 'http_50 x', errorClass: 'A.B' }),
        },
        c: { ...at('payments.eu'), failure: aFailure({ reason: 'HTTP_503', message: '', errorClass: '' }) },
        d: { ...at('pay%'), failure: null },
      })
      expect(await found({ origins: ['payments'] })).toEqual(['a', 'b'])
      expect(await found({ origins: ['pay%'] })).toEqual(['d'])
      expect(await found({ reasons: ['http_503'] })).toEqual(['a'])
      expect(await found({ reasons: ['unknown', 'HTTP_503'] })).toEqual(['c', 'd'])
      expect(await found({ slugs: ['http_503'] })).toEqual(['a'])
      expect(await found({ slugs: ['unknown'] })).toEqual(['c', 'd'])
      expect(await found({ errorClasses: ['A'] })).toEqual(['a'])
      expect(await found({ errorClasses: [''] })).toEqual(['c', 'd'])
      expect(await found({ errorClasses: [] })).toEqual([])
      const { letters } = await list({})
      for (const { groupId, reference } of letters) {
        expect(await found({ groupIds: [groupId ?? -1] })).toEqual([reference])
      }
      expect(await found({ groupIds: [] })).toEqual([])
    })

    it('redrives, both bounds included', async () => {
      const queue = await given.queue()
      await captureNamed(queue, { a: {}, b: { redrives: 1 }, c: { redrives: 3 }, d: { redrives: 12 } })
      expect(await found({ redrives: { min: 1 } })).toEqual(['b', 'c', 'd'])
      expect(await found({ redrives: { max: 1 } })).toEqual(['a', 'b'])
      expect(await found({ redrives: { min: 1, max: 3 } })).toEqual(['b', 'c'])
      expect(await found({ redrives: { min: 4, max: 9 } })).toEqual([])
      expect(await found({ redrives: { min: 10 } })).toEqual(['d'])
    })

    it('times of death, last change and last failure, both bounds included', async () => {
      const queue = await given.queue()
      const failedAt = (lastFailedAt: number) => ({ failure: aFailure({ lastFailedAt }) })
      await acts.capture(
        queue,
        [1, 2, 3].map((number) =>
          aLetter({ reference: `${number}`, diedAt: noon + number, ...failedAt(noon - number) }),
        ),
      )
      await acts.capture(queue, [aLetter({ reference: 'none', failure: null })], noon + hour)
      expect(await found({ died: { from: noon + 2 } })).toEqual(['2', '3', 'none'])
      expect(await found({ died: { until: noon + 2 } })).toEqual(['1', '2'])
      expect(await found({ died: { from: noon + 2, until: noon + 2 } })).toEqual(['2'])
      expect(await found({ updated: { from: noon + 1 } })).toEqual(['none'])
      expect(await found({ updated: { until: noon } })).toEqual(['1', '2', '3'])
      expect(await found({ lastFailed: { from: noon - 2 } })).toEqual(['1', '2'])
      expect(await found({ lastFailed: { until: noon - 2 } })).toEqual(['2', '3'])
    })

    it('key, byte for byte, also where keys share a long beginning', async () => {
      const queue = await given.queue()
      await captureNamed(queue, {
        none: { key: null },
        empty: { key: new Uint8Array() },
        k: { key: bytes('k') },
        K: { key: bytes('K') },
        k0: { key: new Uint8Array([107, 0]) },
        noText: { key: noText },
        longA: { key: bytes(`${longPrefix}a`) },
        longB: { key: bytes(`${longPrefix}b`) },
        long: { key: bytes(longPrefix) },
      })
      expect(await found({ key: bytes('k') })).toEqual(['k'])
      expect(await found({ key: new Uint8Array([107, 0]) })).toEqual(['k0'])
      expect(await found({ key: new Uint8Array() })).toEqual(['empty'])
      expect(await found({ key: noText })).toEqual(['noText'])
      expect(await found({ key: bytes(`${longPrefix}a`) })).toEqual(['longA'])
      expect(await found({ key: bytes(`${longPrefix}b`) })).toEqual(['longB'])
      expect(await found({ key: bytes(longPrefix) })).toEqual(['long'])
      expect(await found({ key: bytes(longPrefix.slice(1)) })).toEqual([])
    })

    it('text in the message, whatever its case and whatever characters it has', async () => {
      const queue = await given.queue()
      const messages = {
        quote: 'he said "stop"',
        slash: String.raw`path C:\temp\new`,
        percent: '100% of disk_a',
        accents: 'Größe ÉCLAIR',
        newline: 'first\nsecond\tthird',
        json: '{"error":"no \\"card\\""}',
        rocket: 'launch 🚀 failed',
        upper: 'HTTP 503: UPSTREAM',
        none: '',
      }
      await captureNamed(
        queue,
        Object.fromEntries(
          Object.entries(messages).map(([name, message]) => [name, { failure: aFailure({ message }) }]),
        ),
      )
      const texts: Record<string, string[]> = {
        '"stop"': ['quote'],
        'C:\\temp': ['slash'],
        '0%': ['percent'],
        '%': ['percent'],
        _: ['percent'],
        disk_A: ['percent'],
        größe: ['accents'],
        GRÖSSE: [],
        éclair: ['accents'],
        'FIRST\nsecond': ['newline'],
        '\t': ['newline'],
        '\\"card': ['json'],
        '🚀': ['rocket'],
        'http 503': ['upper'],
        upstream: ['upper'],
        "'": [],
        T: ['accents', 'json', 'newline', 'percent', 'quote', 'rocket', 'slash', 'upper'].filter((name) =>
          /t/i.test(messages[name as keyof typeof messages]),
        ),
      }
      for (const [text, names] of Object.entries(texts)) expect(await found({ text }), text).toEqual(names)
    })

    it('text in the present failure only, not in the ones before', async () => {
      const queue = await given.queue()
      await captureNamed(queue, {
        a: { failure: aFailure({ message: 'now' }), history: [aFailure({ message: 'then' })] },
      })
      expect(await found({ text: 'now' })).toEqual(['a'])
      expect(await found({ text: 'then' })).toEqual([])
    })

    it('header, by name or with its value, exactly', async () => {
      const queue = await given.queue()
      await captureNamed(queue, {
        a: { headers: [['trace', bytes('abc')]] },
        b: { headers: [['trace', null]] },
        c: {
          headers: [
            ['Trace', bytes('abc')],
            ['x', bytes('trace')],
          ],
        },
        d: {
          headers: [
            ['x', bytes('1')],
            ['x', bytes('2')],
          ],
        },
        e: {
          headers: [
            ['trace', noText],
            ['', bytes('')],
          ],
        },
        f: { headers: [['quo"te\\', bytes('ü"\\')]] },
        g: { headers: [] },
      })
      expect(await found({ header: { name: 'trace' } })).toEqual(['a', 'b', 'e'])
      expect(await found({ header: { name: 'trace', value: 'abc' } })).toEqual(['a'])
      expect(await found({ header: { name: 'trace', value: 'ab' } })).toEqual([])
      expect(await found({ header: { name: 'x', value: '2' } })).toEqual(['d'])
      expect(await found({ header: { name: 'trace', value: '' } })).toEqual([])
      expect(await found({ header: { name: '', value: '' } })).toEqual(['e'])
      expect(await found({ header: { name: 'quo"te\\', value: 'ü"\\' } })).toEqual(['f'])
    })

    it('JSON path in the payload; what is not JSON has no paths', async () => {
      const queue = await given.queue()
      const payloads = {
        object: '{"a":1,"b":{"c":"x"},"list":[10,"ten",{"deep":null}],"t":true}',
        other: ' {"a": "1", "b": {"c": "X"}, "list": [], "t": null } ',
        odd: JSON.stringify({
          'quo"te': 'say "hi"',
          'back\\slash': '\\',
          'dot.key': 'd',
          '': 'empty',
          $: 'dollar',
          ü: 'Ü',
        }),
        number: '5',
        text: '"five"',
        broken: '{"a":1',
        words: 'a=1',
        empty: '',
      }
      await captureNamed(
        queue,
        Object.fromEntries(
          Object.entries(payloads).map(([name, payload]) => [name, { payload: bytes(payload) }]),
        ),
      )
      await captureNamed(queue, { noText: { payload: noText } })
      const cases: readonly [
        path: (string | number)[],
        value: NonNullable<LetterFilter['json']>['value'],
        names: string[],
      ][] = [
        [['a'], { number: '1' }, ['object']],
        [['a'], '1', ['other']],
        [['b', 'c'], 'x', ['object']],
        [['list', 0], { number: '10' }, ['object']],
        [['list', 1], 'ten', ['object']],
        [['list', 2, 'deep'], null, ['object']],
        [['list', 3], null, []],
        [['t'], true, ['object']],
        [['t'], null, ['other']],
        [['t'], 'true', []],
        [['missing'], null, []],
        [['list', 'length'], { number: '3' }, []],
        [['quo"te'], 'say "hi"', ['odd']],
        [['back\\slash'], '\\', ['odd']],
        [['dot.key'], 'd', ['odd']],
        [[''], 'empty', ['odd']],
        [['$'], 'dollar', ['odd']],
        [['ü'], 'Ü', ['odd']],
        [[], { number: '5' }, ['number']],
        [[], 'five', ['text']],
      ]
      for (const [path, value, names] of cases) {
        expect(await found({ json: { path, value } }), JSON.stringify({ path, value })).toEqual(names)
      }
    })

    it('a number of its payload, by what it is and not by how it is written or what a double makes of it', async () => {
      const queue = await given.queue()
      const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
      const payloads = {
        n417: '{"a":417}',
        n417point: '{"a":417.00}',
        n417exponent: '{"a":4.17e2}',
        n417small: '{"a":4170E-1}',
        n417near: '{"a":417.00000000000000000001}',
        big2: '{"a":9007199254740992}',
        big3: '{"a":9007199254740993}',
        big3point: '{"a":9007199254740.993e3}',
        last: '{"a":9007199254740992,"\\u0061":9007199254740993}',
        first: '{"a":9007199254740993,"a":"9007199254740993"}',
        beyond: '{"a":1e400}',
        beyondToo: '{"a":10e+399}',
        below: '{"a":-1e400}',
        further: '{"a":1e999999999}',
        zero: '{"a":0}',
        zeroBelow: '{"a":-0.0}',
        tiny: '{"a":1e-400}',
        nothing: '{"a":null}',
        deep: `{"deep":${deep},"a":12345678901234567890}`,
      }
      await captureNamed(
        queue,
        Object.fromEntries(
          Object.entries(payloads).map(([name, payload]) => [name, { payload: bytes(payload) }]),
        ),
      )
      const n417 = ['n417', 'n417exponent', 'n417point', 'n417small']
      const cases: readonly [number: string, names: string[]][] = [
        ['417', n417],
        ['417.0', n417],
        ['0.0417e+4', n417],
        ['417.00000000000000000001', ['n417near']],
        ['9007199254740992', ['big2']],
        ['9007199254740993', ['big3', 'big3point', 'last']],
        ['9007199254740994', []],
        ['1e400', ['beyond', 'beyondToo']],
        ['0.1e401', ['beyond', 'beyondToo']],
        ['-1e400', ['below']],
        ['1e999999999', ['further']],
        ['1e999999998', []],
        ['0', ['zero', 'zeroBelow']],
        ['-0', ['zero', 'zeroBelow']],
        ['1e-400', ['tiny']],
        ['12345678901234567890', ['deep']],
        ['12345678901234567891', []],
      ]
      for (const [number, names] of cases) {
        expect(await found({ json: { path: ['a'], value: { number } } }), number).toEqual(names)
      }
      expect(await found({ json: { path: ['a'], value: null } })).toEqual(['nothing'])
    })

    it('when the policy sends it back', async () => {
      const backoff = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
      const auto = await given.queue({ redrive: { mode: 'auto', redrivesMax: 3, backoff } })
      const manual = await given.queue()
      await acts.capture(auto, [aLetter({ reference: 'early' })])
      await acts.capture(auto, [aLetter({ reference: 'late' })], noon + minute)
      const [, discarded = ''] = await acts.capture(auto, [
        aLetter({ reference: 'x' }),
        aLetter({ reference: 'given up' }),
      ])
      await acts.discard([discarded])
      await acts.capture(manual, [aLetter({ reference: 'never' })])
      expect(await found({ dueBy: noon + hour - 1 })).toEqual([])
      expect(await found({ dueBy: noon + hour })).toEqual(['early', 'x'])
      expect(await found({ dueBy: noon + 2 * hour })).toEqual(['early', 'late', 'x'])
    })

    it('when the store got it, or got it back, whenever it died', async () => {
      const queue = await given.queue()
      const past = { diedAt: noon - 99 * hour }
      const [, early = ''] = await acts.capture(queue, [
        aLetter({ reference: 'future', diedAt: noon + 99 * hour }),
        aLetter({ reference: 'restored', ...past }),
      ])
      await acts.capture(queue, [aLetter({ reference: 'late', ...past })], noon + minute)
      await acts.discard([early])
      const archive = { op: 'archive', queue, endedBefore: noon + 1, countMax: 9, now: noon + 1 } as const
      expect(await given.run(archive)).toEqual({ archived: 1 })
      await given.run({ op: 'restore', letterIds: [early], now: noon + 2 * minute })
      expect(await found({ queues: [queue], arrivedUntil: noon - 1 })).toEqual([])
      expect(await found({ queues: [queue], arrivedUntil: noon })).toEqual(['future'])
      expect(await found({ queues: [queue], arrivedUntil: noon + minute })).toEqual(['future', 'late'])
      expect(await found({ queues: [queue], arrivedUntil: noon + 2 * minute })).toEqual([
        'future',
        'late',
        'restored',
      ])
    })

    it('everything together', async () => {
      const queue = await given.queue()
      const failure = aFailure({ reason: 'r', errorClass: 'E', message: 'Some: text' })
      const right = {
        failure,
        key: bytes('k'),
        headers: [['h', bytes('v')]] as const,
        payload: bytes('{"a":1}'),
      }
      await captureNamed(queue, {
        right,
        key: { ...right, key: null },
        header: { ...right, headers: [] },
        payload: { ...right, payload: bytes('{"a":2}') },
        reason: { ...right, failure: { ...failure, reason: 'other' } },
      })
      const filter: LetterFilter = {
        queues: [queue],
        states: ['waiting'],
        reasons: ['r'],
        slugs: ['some'],
        errorClasses: ['E'],
        origins: ['payments'],
        redrives: { min: 0, max: 0 },
        died: { from: noon, until: noon },
        key: bytes('k'),
        text: 'TEXT',
        header: { name: 'h', value: 'v' },
        json: { path: ['a'], value: { number: '1' } },
      }
      expect(await found(filter)).toEqual(['right'])
    })
  })

  it('has letters only, in every queue they are in, and all of them whole', async () => {
    const { names } = await oneOfEachState(given)
    const plain = await given.queue()
    await given.run({ op: 'produce', queue: plain, partition: 0, items: newItems(2), now: noon })
    const sourced = [{ payload: bytes('x'), sourceId: 'no letter' }]
    await given.run({ op: 'import', queue: plain, partition: 0, items: sourced, now: noon })
    const { letters, looked } = await list({})
    expect(letters.map(({ reference }) => reference).toSorted()).toEqual(names)
    expect(looked).toBeGreaterThanOrEqual(letters.length)
    for (const letter of letters) {
      expect((await listAll(given.storage, letter.queue)).find(({ id }) => id === letter.id)).toEqual(letter)
      expect(await given.storage.getLetters([letter.rootId])).toEqual([letter])
    }
    const ids = letters.map(({ rootId }) => rootId).toReversed()
    expect(await given.storage.getLetters([...ids, '0'.repeat(27), 'no id'])).toEqual(letters.toReversed())
    expect(await given.storage.getLetters([])).toEqual([])
  })

  it('leaves the bytes away when they are not asked for, and finds by them all the same', async () => {
    const queue = await given.queue()
    const odd = { payload: bytes('{"a":1}'), key: bytes('k'), headers: [['h', noText]] as const }
    await captureNamed(queue, { a: odd, b: {} })
    const filter = { key: bytes('k'), header: { name: 'h' }, json: { path: ['a'], value: { number: '1' } } }
    const [[bare], [full]] = [
      (await list({ filter, bytes: 'none' })).letters,
      (await list({ filter })).letters,
    ]
    const { payload, key, headers, ...rest } = bare as Item
    expect([payload.length, key?.length ?? 0, headers.length]).toEqual([0, 0, 0])
    expect(full).toMatchObject({ ...rest, ...odd })
  })

  it('is not broken by any payload, key, header or text', async () => {
    const queue = await given.queue()
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    await captureNamed(queue, {
      a: {
        payload: everyByte,
        key: everyByte,
        headers: [
          ['h', everyByte],
          ['', null],
          ['ü"\\', noText],
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
    expect(await found({})).toEqual(all)
    expect(await found({ json: { path: ['nothing'], value: 'x' } })).toEqual([])
    expect(await found({ json: { path: ['a', 'b', 0], value: null } })).toEqual([])
    expect(await found({ header: { name: 'h', value: 'x' } })).toEqual([])
    expect(await found({ text: '"\\\' %_' })).toEqual(['f'])
    for (const filter of [{}, { text: 'refused' }, { json: { path: ['a'], value: { number: '7' } } }]) {
      const pages = await walk(given, { ...whole, filter, countMax: 2, lookMax: 3 })
      expect(pages.flat().length).toBe((await found(filter)).length)
    }
  })

  it('goes on from the next cursor while letters arrive, change and end: none is repeated, none left out', async () => {
    const { work } = await acts.queues()
    const ids = await acts.bury(work, newItems(30))
    const seen: string[] = []
    let after: LetterCursor | undefined
    for (let round = 0; ; round++) {
      const page = await list({ countMax: 4, lookMax: 100, ...(after === undefined ? {} : { after }) })
      seen.push(...page.letters.map(({ rootId }) => rootId))
      if (page.next === null) break
      after = page.next
      if (round > 50) throw new Error('it does not end')
      const [first = ''] = page.letters.map(({ rootId }) => rootId)
      await acts.send(first, noon + round)
      await acts.discard([seen.at(-1) ?? ''], noon + round)
    }
    expect(seen.toSorted()).toEqual(ids.toSorted())
  })

  it('looks at no more than it is told to, says how far it came, and goes on from there', async () => {
    const queue = await given.queue()
    const letters = Array.from({ length: 40 }, (_, index) =>
      aLetter({ reference: `${index}`, diedAt: noon + index, payload: bytes(`{"n":${index}}`) }),
    )
    await acts.capture(queue, letters)
    const filter = { json: { path: ['n'], value: { number: '33' } } }
    const pages = await walk(given, { ...whole, filter, lookMax: 7, countMax: 5 })
    expect(pages.flat()).toHaveLength(1)
    expect(pages.length).toBeGreaterThanOrEqual(6)
  })

  it('knows letters by UUID: the first 16 bytes of their id, live or archived', async () => {
    const { work, letters } = await acts.queues()
    const ids = await acts.bury(work, newItems(200))
    const uuids = ids.map(ksuidToUuid)
    expect(new Set(uuids).size).toBe(200)
    expect(uuids).toEqual(ids.map(firstSixteenBytes))
    await acts.discard(ids.slice(0, 100))
    await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 1_000, now: noon })
    const { ids: plain } = await given.run({
      op: 'produce',
      queue: work,
      partition: 0,
      items: newItems(1),
      now: noon,
    })
    const strangers = [ksuidToUuid(plain[0] ?? ''), '00000000-0000-0000-0000-000000000000']
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

/** One letter in each state, named after it; two are leased: by a consumer, and by a redrive. */
async function oneOfEachState(given: Given) {
  const acts = letterActs(given)
  const held = await given.queue()
  const queue = await given.queue({ attemptsMax: 1 })
  const target = await given.queue()
  const named = (reference: string, changes: Partial<ImportedItem> = {}) => aLetter({ reference, ...changes })
  await acts.capture(held, [named('leased')])
  await acts.take({ queue: held, partition: 0 })
  await acts.capture(queue, [named('done')])
  await acts.complete(await acts.take({ queue, partition: 0 }))
  await acts.capture(queue, [named('dead')])
  await acts.declareDead(await acts.take({ queue, partition: 0 }))
  const [redriving = '', discarded = ''] = await acts.capture(queue, [
    named('redriving'),
    named('discarded'),
    named('waiting'),
    named('scheduled', { availableAt: noon + hour }),
  ])
  await acts.send(redriving, noon, target)
  await acts.discard([discarded])
  const states: Record<ListedState, string[]> = {
    waiting: ['waiting'],
    scheduled: ['scheduled'],
    leased: ['leased', 'redriving'],
    done: ['done'],
    dead: ['dead'],
    discarded: ['discarded'],
  }
  return { names: Object.values(states).flat().toSorted(), states }
}
