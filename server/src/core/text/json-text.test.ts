import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { findText, splitElements, splitFields } from './json-text.ts'

describe('the parts of a JSON text', () => {
  it('the parts of a JSON text are unchanged slices of it', () => {
    const text =
      ' { "a" : 12345678901234567890 ,"a":1.0,\n"b\\"":{"x":"}\\\\"},"":[ ],"c":"\\ud800,\\"" , "d":null}'
    expect(splitFields(text)).toEqual([
      ['a', '12345678901234567890'],
      ['a', '1.0'],
      ['b"', '{"x":"}\\\\"}'],
      ['', '[ ]'],
      ['c', '"\\ud800,\\""'],
      ['d', 'null'],
    ])
    expect(splitElements(' [1 , [2,"]"],{"a":[3]},true]')).toEqual(['1', '[2,"]"]', '{"a":[3]}', 'true'])
    expect(splitFields('{}')).toEqual([])
    expect(splitElements('[ ]')).toEqual([])
  })

  it('the parts parse to the same values as the whole text, for random texts', () => {
    const spaces = fc.constantFrom(undefined, 1, '\t', '\n ')
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), spaces, (value, space) => {
        const text = JSON.stringify(value, null, space)
        const parsed = splitFields(text).map(([name, part]) => [name, JSON.parse(part)])
        expect(parsed).toEqual(Object.entries(JSON.parse(text)))
      }),
    )
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), spaces, (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(splitElements(text).map((part) => JSON.parse(part))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('deeply nested and very long parts are found', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const long = `"${'\\\\\\"'.repeat(200_000)}"`
    expect(splitFields(`{"deep":${deep},"long":${long}}`)).toEqual([
      ['deep', deep],
      ['long', long],
    ])
  })
})

describe('the text at a path', () => {
  const text =
    ' {"a":{"b":1},"a":{"b":[ 2,[30],{"c\\"":4.0 }],"x":"}"},"n":1e400 ,"list":[],"\\u0061\\u0062":"ab","":5,"__proto__":6}'

  it.each<[path: (string | number)[], found: string | undefined]>([
    [['a', 'b'], '[ 2,[30],{"c\\"":4.0 }]'],
    [['a', 'b', 0], '2'],
    [['a', 'b', 1, 0], '30'],
    [['a', 'b', 2, 'c"'], '4.0'],
    [['a', 'b', 3], undefined],
    [['a', 'b', '0'], undefined],
    [['a', 0], undefined],
    [['n'], '1e400'],
    [['n', 'n'], undefined],
    [['list', 0], undefined],
    [['ab'], '"ab"'],
    [[''], '5'],
    [['__proto__'], '6'],
    [['missing'], undefined],
    [[], text.trim()],
  ])('the value at %j is an unchanged slice of the text', (path, found) => {
    expect(findText(text, path)).toBe(found)
  })

  it('the last of several equal names counts, also if only an earlier one has the rest of the path', () => {
    expect(findText('{"a":1,"a":2}', ['a'])).toBe('2')
    expect(findText('{"a":{"b":1},"a":{"c":2}}', ['a', 'b'])).toBeUndefined()
    expect(findText('{"a":{"b":1},"a":3}', ['a', 'b'])).toBeUndefined()
    expect(findText('[{"a":1,"b":[1],"a":[7,8]}]', [0, 'a', 1])).toBe('8')
    expect(findText(' 5 ', [])).toBe('5')
    expect(findText('5', ['a'])).toBeUndefined()
  })

  it('the value at a path is the one that parsing finds, for random texts and paths', () => {
    const name = fc.constantFrom('a', 'b', '')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.integer().map(String),
        fc.constantFrom('"]"', 'null', '"\\""'),
        fc.array(tie('value')).map((parts) => `[${parts.join(' , ')}]`),
        fc.array(fc.tuple(name, tie('value'))).map((fields) => {
          return `{${fields.map(([each, part]) => `"${each}": ${part}`).join(',')}}`
        }),
      ),
    }))
    const path = fc.array(fc.oneof(name, fc.nat(2)), { maxLength: 4 })
    fc.assert(
      fc.property(value as fc.Arbitrary<string>, path, (json, steps) => {
        const found = findText(json, steps)
        expect(found === undefined ? undefined : JSON.parse(found)).toEqual(parsedAt(json, steps))
      }),
      { numRuns: 3_000 },
    )
  })

  // Quadratic time would exceed the timeout of the test, and recursion the stack.
  it('a value is found in linear time in deeply nested and long texts', () => {
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`
    const path = Array.from({ length: 32 }, () => 'a')
    expect(findText(`${'{"a":'.repeat(32)}1.50${`,"deep":${deep}}`.repeat(2)}${'}'.repeat(30)}`, path)).toBe(
      '1.50',
    )
    expect(findText(`[${deep},7]`, [1])).toBe('7')
    expect(findText(`[${'{"a":'.repeat(1_000_000)}8${'}'.repeat(1_000_000)}]`, [0, ...path])).toMatch(
      /^{"a":/,
    )
  })
})

function parsedAt(text: string, path: readonly (string | number)[]): unknown {
  let part: unknown = JSON.parse(text)
  for (const step of path) {
    if (part === null || typeof part !== 'object') return undefined
    if (Array.isArray(part) !== (typeof step === 'number') || !Object.hasOwn(part, step)) return undefined
    part = (part as Record<string | number, unknown>)[step]
  }
  return part
}
