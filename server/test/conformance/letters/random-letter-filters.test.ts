/** Compares random filters and pages with a plain filter over all letters. */

import { expect, it } from 'vitest'
import { type Item, isLetter } from '../../../src/core/items/item.ts'
import type { ItemToImport, ListedState } from '../../../src/storage/contract/items.ts'
import type { LetterFilter } from '../../../src/storage/contract/letters.ts'
import fc from '../../fast-check.ts'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon } from '../../make.ts'
import { repeats } from '../../random-test.ts'
import { expectedLetters } from '../support/expected-letters.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import type { LettersQuery } from '../support/list-letters.ts'
import { longPrefix, readLetterPages, undecodableBytes } from '../support/read-letter-pages.ts'
import { listAll } from '../support/store-reads.ts'
import { describeStores, type StoreFixture } from '../support/test-stores.ts'

describeStores('a list of letters', (given) => {
  const runs = repeats({ 'SQLite memory': 120, 'SQLite file': 30, PostgreSQL: 40 }[given.name])
  it('a list returns the letters that a plain filter finds, for random filters and pages', {
    timeout: 60_000 + runs * 1_000,
  }, async () => {
    const queues = await manyLetters(given)
    const all: Item[] = []
    for (const queue of queues) all.push(...(await listAll(given.storage, queue)).filter(isLetter))
    const groupIds = [...new Set(all.map(({ groupId }) => groupId ?? -1))]
    const letterIds = all.map(({ rootId }) => rootId)
    await fc.assert(
      fc.asyncProperty(aQuery(queues, groupIds, letterIds), async (query) => {
        const pages = await readLetterPages(given, query)
        expect(pages.flat().map(({ rootId }) => rootId)).toEqual(
          expectedLetters(all, query).map(({ rootId }) => rootId),
        )
      }),
      { numRuns: runs },
    )
  })
})

const messages = [
  'HTTP 503: upstream',
  'http 503: UPSTREAM 17',
  'say "hello" to C:\\temp',
  'Größe ÉCLAIR',
  'line\nbreak\ttab',
  '100% of disk_a',
  'it’s 🚀',
  '',
]
const headerSets: ItemToImport['headers'][] = [
  [],
  [['trace', bytes('abc')]],
  [
    ['trace', null],
    ['x', bytes('1')],
  ],
  [['Trace', bytes('abc')]],
  [['traceparent', bytes(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)]],
  [
    ['x', bytes('1')],
    ['traceparent', bytes(`00-${'c'.repeat(32)}-${'b'.repeat(16)}-00`)],
  ],
  [
    ['trace', undecodableBytes],
    ['x', bytes('"ü\\')],
  ],
]
const payloads = [
  '{"a":1,"b":{"c":"x"},"list":[1,"two",null]}',
  '{"a":"1","b":{"c":"say \\"x\\""},"list":[]}',
  '{"a":null}',
  '{"a":10e-1,"b":{"c":9007199254740993},"list":[1e400,{},1.0]}',
  '{"a":0.1E1,"b":{"c":9007199254740992},"list":[10e399,"x",1.00000000000000000001]}',
  'not json',
  '7',
  '',
].map(bytes)
const keys = [null, bytes(''), bytes('k'), bytes(`${longPrefix}a`), bytes(`${longPrefix}b`), undecodableBytes]

const cycle = <T>(values: readonly T[], index: number): T => values[index % values.length] as T

function letterAt(index: number): ItemToImport {
  const failure = aFailure({
    message: cycle(messages, index),
    errorCode: cycle(['http_503', 'http_410', ''], index),
    errorClass: cycle(['A', 'A.B', ''], index >> 1),
    lastFailedAt: noon - (index % 5) * minute,
  })
  return aLetter({
    payload: index % 11 === 0 ? undecodableBytes : cycle(payloads, index),
    key: cycle(keys, index),
    headers: cycle(headerSets, index) ?? [],
    failure: index % 17 === 0 ? null : failure,
    origin: anOrigin({ name: cycle(['payments', 'orders'], index >> 2) }),
    deadLetteredAt: noon - (index % 7) * minute,
    retryCount: cycle([0, 0, 1, 2, 12], index),
    reference: cycle(['', 'r-1', 'r-2', `${longPrefix}1`], index >> 1),
    ...(index % 13 === 0 ? { availableAt: noon + hour } : {}),
    ...(index % 2 === 0 ? { sourceId: `source-${index}` } : {}),
  })
}

/** Letters in three queues: every state, unusual values, and many with equal times. */
async function manyLetters(given: StoreFixture): Promise<string[]> {
  const actions = createLetterActions(given)
  const backoff = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
  const queues = [
    await given.queue({ redrive: { mode: 'auto', redrivesMax: 3, backoff } }),
    await given.queue(),
    await given.queue(),
  ]
  const target = await given.queue()
  const ids: string[] = []
  for (let index = 0; index < 120; index++) {
    const now = noon + (index % 4) * minute
    ids.push(...(await actions.capture(cycle(queues, index), [letterAt(index)], now)))
  }
  await given.run({ op: 'produce', queue: target, partition: 0, items: newItems(3), now: noon })
  const some = (step: number, from: number) => ids.filter((_, index) => index % step === from)
  await actions.discard(some(9, 2), noon + 5 * minute)
  await actions.redrive([], {
    letters: some(9, 3).map((letterId) => ({ letterId, queue: target })),
    isCapped: false,
    now: noon + 6 * minute,
  })
  for (const way of ['complete', 'declareDead', 'nothing'] as const) {
    for (const queue of queues) {
      const item = await actions.leaseOne({ queue, partition: 0 }, noon + 7 * minute)
      if (way === 'complete') await actions.complete(item, noon + 7 * minute)
      if (way === 'declareDead')
        await actions.declareDead(item, { message: 'dead: there' }, noon + 8 * minute)
    }
  }
  return queues
}

function aQuery(
  queues: readonly string[],
  groupIds: readonly number[],
  letterIds: readonly string[],
): fc.Arbitrary<LettersQuery> {
  const some = <T>(values: readonly T[]) => fc.subarray([...values], { minLength: 0 })
  const times = (values: readonly number[]) => {
    const at = fc.constantFrom(...values)
    return fc.oneof(fc.record({ from: at }), fc.record({ until: at }), fc.record({ from: at, until: at }))
  }
  const deaths = [0, 1, 3, 6].map((minutes) => noon - minutes * minute)
  const json = fc.oneof(
    fc.record({
      path: fc.constantFrom<(string | number)[]>(
        ['a'],
        ['b', 'c'],
        ['list', 0],
        ['list', 2],
        [],
        ['nothing'],
      ),
      value: fc.oneof(
        fc.constantFrom(null, true, '1', 'x', 'say "x"'),
        fc.constantFrom('1', '1.0', '7', '70e-1', '9007199254740993', '1e400').map((number) => ({ number })),
      ),
    }),
  )
  const filter = fc.record(
    {
      queues: some([...queues, 'nowhere']),
      states: some<ListedState>(['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded']),
      groupIds: some(groupIds),
      origins: some(['payments', 'orders', 'other']),
      errorCodes: some(['http_503', 'http_410', 'unknown', 'declared_dead']),
      slugs: some(['http_503', 'say', 'unknown', 'dead']),
      errorClasses: some(['A', 'A.B', '']),
      retryCount: fc.record(
        { min: fc.constantFrom(0, 1, 2, 10), max: fc.constantFrom(0, 1, 2, 9) },
        { requiredKeys: [] },
      ),
      died: times(deaths),
      updated: times([0, 1, 3, 5, 6, 8].map((minutes) => noon + minutes * minute)),
      lastFailed: times([0, 2, 4].map((minutes) => noon - minutes * minute)),
      letterIds: some([...letterIds, 'no id']),
      sourceIds: some(['source-0', 'source-2', 'source-44', 'other']),
      references: some(['', 'r-1', 'r-2', `${longPrefix}1`, `${longPrefix}2`]),
      traceIds: some(['a'.repeat(32), 'c'.repeat(32), 'd'.repeat(32)]),
      payloadText: fc.constantFrom('NOT JSON', '"a"', 'say \\"x', '7', '\ufffd', 'nothing of it'),
      key: fc.constantFrom(...keys.filter((key) => key !== null)),
      text: fc.constantFrom(
        '503',
        'Upstream',
        '"HELLO"',
        'c:\\TEMP',
        'éclair',
        '\n',
        '%',
        '🚀',
        'nothing of it',
      ),
      header: fc.record(
        { name: fc.constantFrom('trace', 'Trace', 'x', 'y'), value: fc.constantFrom('abc', '1', '"ü\\') },
        { requiredKeys: ['name'] },
      ),
      json,
      dueBy: fc.constantFrom(noon + hour, noon + hour + 2 * minute, noon + 9 * hour),
    },
    { requiredKeys: [] },
  )
  // All filters together find nothing, so use a few at a time.
  const thin = fc.tuple(filter, fc.array(fc.nat(30), { maxLength: 3 })).map(([all, picked]) => {
    const entries = Object.entries(all)
    const kept = picked.flatMap((at) => (entries.length === 0 ? [] : [entries[at % entries.length] ?? []]))
    return Object.fromEntries(
      kept.filter((entry) => entry.length === 2) as [string, unknown][],
    ) as LetterFilter
  })
  return fc.record({
    filter: thin,
    order: fc.constantFrom('deadLetteredAt' as const, 'updatedAt' as const),
    isDescending: fc.boolean(),
    countMax: fc.constantFrom(1, 2, 7, 50, 1_000),
    examinedMax: fc.constantFrom(1, 5, 20, 1_000, 1_000),
    bytes: fc.constantFrom('none' as const, 'head' as const, 'all' as const),
  })
}
