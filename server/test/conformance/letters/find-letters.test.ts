/** Tests each filter alone. random-letter-filters.test.ts combines random filters with random pages. */
import { expect, it } from 'vitest'
import type { ListedState } from '../../../src/storage/contract/items.ts'
import type { LetterFilter } from '../../../src/storage/contract/letters.ts'
import { aFailure, anOrigin, bytes, hour, minute, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { captureOneOfEachState, lettersByReference } from '../support/letters-by-reference.ts'
import { longPrefix, undecodableBytes } from '../support/read-letter-pages.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('letter filters', (given) => {
  const actions = createLetterActions(given)
  const { list, findReferences, captureByReference } = lettersByReference(given)

  it('letters are found by queue', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    await captureByReference(one, { a: {}, b: {} })
    await captureByReference(two, { c: {} })
    expect(await findReferences({ queues: [one] })).toEqual(['a', 'b'])
    expect(await findReferences({ queues: [one, two] })).toEqual(['a', 'b', 'c'])
    expect(await findReferences({ queues: [two, 'nowhere'] })).toEqual(['c'])
    expect(await findReferences({ queues: [] })).toEqual([])
    expect(await findReferences({})).toEqual(['a', 'b', 'c'])
  })

  it('letters are found by namespace, together with every other condition', async () => {
    const { version } = await given.storage.readAccessState()
    const changes = ['north', 'south'].map(
      (name) =>
        ({
          change: 'put-namespace',
          namespace: { name, description: '', keyTag: '', createdAt: noon },
        }) as const,
    )
    await given.run({ op: 'change-access', version, changes })
    const [north, south, other] = [
      await given.queue({ namespace: 'north' }),
      await given.queue({ namespace: 'south' }),
      await given.queue(),
    ]
    const trace = bytes(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)
    const letter = {
      sourceId: 'one',
      key: bytes('k'),
      failure: aFailure({ message: 'HTTP 503' }),
      headers: [['traceparent', trace]] as const,
    }
    for (const [queue, name] of [
      [north, 'n'],
      [south, 's'],
      [other, 'o'],
    ] as const)
      await captureByReference(queue, { [name]: { ...letter, sourceId: `source-${name}` } })
    const letterIds = (await list({})).letters.map(({ rootId }) => rootId)
    const references = ['n', 's', 'o']
    const filters: LetterFilter[] = [
      {},
      { letterIds },
      { references },
      { sourceIds: references.map((name) => `source-${name}`) },
      { traceIds: ['a'.repeat(32)] },
      { key: bytes('k') },
      { states: ['waiting'] },
      { slugs: ['http_503'] },
      { text: '503' },
      { retryCount: { max: 3 } },
      { queues: [north, south, other] },
    ]
    for (const filter of filters) {
      expect(await findReferences({ ...filter, namespaces: ['north'] })).toEqual(['n'])
      expect(await findReferences({ ...filter, namespaces: ['_system', 'south'] })).toEqual(['o', 's'])
      expect(await findReferences({ ...filter, namespaces: [] })).toEqual([])
    }
    expect(await findReferences({ queues: [south], namespaces: ['north'] })).toEqual([])
    const count = async (namespaces: string[], by: 'slug' | 'state') =>
      (await given.storage.countLetters({ filter: { namespaces }, by: [by] })).map((row) => row.count)
    expect(await count(['north'], 'slug')).toEqual([1])
    expect(await count(['north', 'south'], 'state')).toEqual([2])
    const namespaces = await given.storage.readLetterNamespaces([...letterIds, 'unknown'])
    expect(namespaces.map(({ namespace }) => namespace).sort()).toEqual(['_system', 'north', 'south'])
  })

  it('letters are found by state', async () => {
    const { names, states } = await captureOneOfEachState(given)
    for (const [state, name] of Object.entries(states)) {
      expect(await findReferences({ states: [state as ListedState] }), state).toEqual(name)
    }
    expect(await findReferences({ states: ['waiting', 'scheduled', 'dead'] })).toEqual([
      'dead',
      'scheduled',
      'waiting',
    ])
    expect(await findReferences({ states: [] })).toEqual([])
    expect(await findReferences({})).toEqual(names)
  })

  it('letters are found by exact group, origin, reason, slug and error class', async () => {
    const queue = await given.queue()
    const at = (name: string) => ({ origin: anOrigin({ name }) })
    await captureByReference(queue, {
      a: {
        ...at('payments'),
        failure: aFailure({ errorCode: 'http_503', message: 'HTTP 503: x', errorClass: 'A' }),
      },
      b: {
        ...at('payments'),
        failure: aFailure({ errorCode: 'http_50', message: 'http_50 x', errorClass: 'A.B' }),
      },
      c: { ...at('payments.eu'), failure: aFailure({ errorCode: 'HTTP_503', message: '', errorClass: '' }) },
      d: { ...at('pay%'), failure: null },
    })
    expect(await findReferences({ origins: ['payments'] })).toEqual(['a', 'b'])
    expect(await findReferences({ origins: ['pay%'] })).toEqual(['d'])
    expect(await findReferences({ errorCodes: ['http_503'] })).toEqual(['a'])
    expect(await findReferences({ errorCodes: ['unknown', 'HTTP_503'] })).toEqual(['c', 'd'])
    expect(await findReferences({ slugs: ['http_503'] })).toEqual(['a'])
    expect(await findReferences({ slugs: ['unknown'] })).toEqual(['c', 'd'])
    expect(await findReferences({ errorClasses: ['A'] })).toEqual(['a'])
    expect(await findReferences({ errorClasses: [''] })).toEqual(['c', 'd'])
    expect(await findReferences({ errorClasses: [] })).toEqual([])
    const { letters } = await list({})
    for (const { groupId, reference } of letters) {
      expect(await findReferences({ groupIds: [groupId ?? -1] })).toEqual([reference])
    }
    expect(await findReferences({ groupIds: [] })).toEqual([])
  })

  it('letters are found by number of redrives, both bounds included', async () => {
    const queue = await given.queue()
    await captureByReference(queue, {
      a: {},
      b: { retryCount: 1 },
      c: { retryCount: 3 },
      d: { retryCount: 12 },
    })
    expect(await findReferences({ retryCount: { min: 1 } })).toEqual(['b', 'c', 'd'])
    expect(await findReferences({ retryCount: { max: 1 } })).toEqual(['a', 'b'])
    expect(await findReferences({ retryCount: { min: 1, max: 3 } })).toEqual(['b', 'c'])
    expect(await findReferences({ retryCount: { min: 4, max: 9 } })).toEqual([])
    expect(await findReferences({ retryCount: { min: 10 } })).toEqual(['d'])
  })

  it('letters are found by time of death, last change and last failure, bounds included', async () => {
    const queue = await given.queue()
    const failedAt = (lastFailedAt: number) => ({ failure: aFailure({ lastFailedAt }) })
    await actions.capture(
      queue,
      [1, 2, 3].map((number) =>
        aLetter({ reference: `${number}`, deadLetteredAt: noon + number, ...failedAt(noon - number) }),
      ),
    )
    await actions.capture(queue, [aLetter({ reference: 'none', failure: null })], noon + hour)
    expect(await findReferences({ died: { from: noon + 2 } })).toEqual(['2', '3', 'none'])
    expect(await findReferences({ died: { until: noon + 2 } })).toEqual(['1', '2'])
    expect(await findReferences({ died: { from: noon + 2, until: noon + 2 } })).toEqual(['2'])
    expect(await findReferences({ updated: { from: noon + 1 } })).toEqual(['none'])
    expect(await findReferences({ updated: { until: noon } })).toEqual(['1', '2', '3'])
    expect(await findReferences({ lastFailed: { from: noon - 2 } })).toEqual(['1', '2'])
    expect(await findReferences({ lastFailed: { until: noon - 2 } })).toEqual(['2', '3'])
  })

  it('letters are found by key, byte for byte, also with a long common prefix', async () => {
    const queue = await given.queue()
    await captureByReference(queue, {
      none: { key: null },
      empty: { key: new Uint8Array() },
      k: { key: bytes('k') },
      K: { key: bytes('K') },
      k0: { key: new Uint8Array([107, 0]) },
      noText: { key: undecodableBytes },
      longA: { key: bytes(`${longPrefix}a`) },
      longB: { key: bytes(`${longPrefix}b`) },
      long: { key: bytes(longPrefix) },
    })
    expect(await findReferences({ key: bytes('k') })).toEqual(['k'])
    expect(await findReferences({ key: new Uint8Array([107, 0]) })).toEqual(['k0'])
    expect(await findReferences({ key: new Uint8Array() })).toEqual(['empty'])
    expect(await findReferences({ key: undecodableBytes })).toEqual(['noText'])
    expect(await findReferences({ key: bytes(`${longPrefix}a`) })).toEqual(['longA'])
    expect(await findReferences({ key: bytes(`${longPrefix}b`) })).toEqual(['longB'])
    expect(await findReferences({ key: bytes(longPrefix) })).toEqual(['long'])
    expect(await findReferences({ key: bytes(longPrefix.slice(1)) })).toEqual([])
  })

  it('letters are found by text in the message, ignoring case', async () => {
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
    await captureByReference(
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
    for (const [text, names] of Object.entries(texts))
      expect(await findReferences({ text }), text).toEqual(names)
  })

  it('letters are found by text in the last failure only', async () => {
    const queue = await given.queue()
    await captureByReference(queue, {
      a: { failure: aFailure({ message: 'now' }), history: [aFailure({ message: 'then' })] },
    })
    expect(await findReferences({ text: 'now' })).toEqual(['a'])
    expect(await findReferences({ text: 'then' })).toEqual([])
  })

  it('letters are found by header name, or by name and exact value', async () => {
    const queue = await given.queue()
    await captureByReference(queue, {
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
          ['trace', undecodableBytes],
          ['', bytes('')],
        ],
      },
      f: { headers: [['quo"te\\', bytes('ü"\\')]] },
      g: { headers: [] },
    })
    expect(await findReferences({ header: { name: 'trace' } })).toEqual(['a', 'b', 'e'])
    expect(await findReferences({ header: { name: 'trace', value: 'abc' } })).toEqual(['a'])
    expect(await findReferences({ header: { name: 'trace', value: 'ab' } })).toEqual([])
    expect(await findReferences({ header: { name: 'x', value: '2' } })).toEqual(['d'])
    expect(await findReferences({ header: { name: 'trace', value: '' } })).toEqual([])
    expect(await findReferences({ header: { name: '', value: '' } })).toEqual(['e'])
    expect(await findReferences({ header: { name: 'quo"te\\', value: 'ü"\\' } })).toEqual(['f'])
  })

  it('letters are found by a JSON path in the payload', async () => {
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
    await captureByReference(
      queue,
      Object.fromEntries(
        Object.entries(payloads).map(([name, payload]) => [name, { payload: bytes(payload) }]),
      ),
    )
    await captureByReference(queue, { noText: { payload: undecodableBytes } })
    // Not found: payloads of more than 1 MiB are not searched.
    const large = (length: number) => ({ payload: bytes(`{"large":"yes","fill":"${'x'.repeat(length)}"}`) })
    await captureByReference(queue, { searched: large(2 ** 20 - 25), tooLarge: large(2 ** 20 - 24) })
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
      [['large'], 'yes', ['searched']],
    ]
    for (const [path, value, names] of cases) {
      expect(await findReferences({ json: { path, value } }), JSON.stringify({ path, value })).toEqual(names)
    }
  })

  it('letters are found by the exact value of a JSON number, not by its spelling', async () => {
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
    await captureByReference(
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
      expect(await findReferences({ json: { path: ['a'], value: { number } } }), number).toEqual(names)
    }
    expect(await findReferences({ json: { path: ['a'], value: null } })).toEqual(['nothing'])
  })

  it('letters are found by the time of their automatic redrive', async () => {
    const backoff = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
    const auto = await given.queue({ redrive: { mode: 'auto', redrivesMax: 3, backoff } })
    const manual = await given.queue()
    await actions.capture(auto, [aLetter({ reference: 'early' })])
    await actions.capture(auto, [aLetter({ reference: 'late' })], noon + minute)
    const [, discarded = ''] = await actions.capture(auto, [
      aLetter({ reference: 'x' }),
      aLetter({ reference: 'given up' }),
    ])
    await actions.discard([discarded])
    await actions.capture(manual, [aLetter({ reference: 'never' })])
    expect(await findReferences({ dueBy: noon + hour - 1 })).toEqual([])
    expect(await findReferences({ dueBy: noon + hour })).toEqual(['early', 'x'])
    expect(await findReferences({ dueBy: noon + 2 * hour })).toEqual(['early', 'late', 'x'])
  })

  it('letters are found by all conditions together', async () => {
    const queue = await given.queue()
    const failure = aFailure({ errorCode: 'r', errorClass: 'E', message: 'Some: text' })
    const right = {
      failure,
      key: bytes('k'),
      headers: [['h', bytes('v')]] as const,
      payload: bytes('{"a":1}'),
    }
    await captureByReference(queue, {
      right,
      key: { ...right, key: null },
      header: { ...right, headers: [] },
      payload: { ...right, payload: bytes('{"a":2}') },
      errorCode: { ...right, failure: { ...failure, errorCode: 'other' } },
    })
    const filter: LetterFilter = {
      queues: [queue],
      states: ['waiting'],
      errorCodes: ['r'],
      slugs: ['some'],
      errorClasses: ['E'],
      origins: ['payments'],
      retryCount: { min: 0, max: 0 },
      died: { from: noon, until: noon },
      key: bytes('k'),
      text: 'TEXT',
      header: { name: 'h', value: 'v' },
      json: { path: ['a'], value: { number: '1' } },
    }
    expect(await findReferences(filter)).toEqual(['right'])
  })
})
