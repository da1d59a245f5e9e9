import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elementTexts, fieldTexts } from './json-text.ts'

describe('the parts of a JSON text', () => {
  it('are as they are written', () => {
    const text =
      ' { "a" : 12345678901234567890 ,"a":1.0,\n"b\\"":{"x":"}\\\\"},"":[ ],"c":"\\ud800,\\"" , "d":null}'
    expect(fieldTexts(text)).toEqual([
      ['a', '12345678901234567890'],
      ['a', '1.0'],
      ['b"', '{"x":"}\\\\"}'],
      ['', '[ ]'],
      ['c', '"\\ud800,\\""'],
      ['d', 'null'],
    ])
    expect(elementTexts(' [1 , [2,"]"],{"a":[3]},true]')).toEqual(['1', '[2,"]"]', '{"a":[3]}', 'true'])
    expect(fieldTexts('{}')).toEqual([])
    expect(elementTexts('[ ]')).toEqual([])
  })

  it('are the same as what parsing finds', () => {
    const spaces = fc.constantFrom(undefined, 1, '\t', '\n ')
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), spaces, (value, space) => {
        const text = JSON.stringify(value, null, space)
        const parsed = fieldTexts(text).map(([name, part]) => [name, JSON.parse(part)])
        expect(parsed).toEqual(Object.entries(JSON.parse(text)))
      }),
    )
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), spaces, (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(elementTexts(text).map((part) => JSON.parse(part))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('are found however deep they are nested and however long they are', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const long = `"${'\\\\\\"'.repeat(200_000)}"`
    expect(fieldTexts(`{"deep":${deep},"long":${long}}`)).toEqual([
      ['deep', deep],
      ['long', long],
    ])
  })
})
