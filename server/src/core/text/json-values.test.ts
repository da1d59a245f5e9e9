import { describe, expect, it } from 'vitest'
import { createValueCounter, hasTooManyValues, jsonValuesMax } from './json-values.ts'

function count(text: string, valuesMax = 1_000) {
  const counter = createValueCounter(valuesMax)
  const bytes = Buffer.from(text)
  counter.read(bytes, 0, bytes.length)
  return counter
}

describe('the number of values in a JSON text', () => {
  it.each([
    ['3', 1],
    ['[1,2,3]', 4],
    ['{"a":{"b":[]}}', 4],
    ['["a,b[{", "\\",["]', 3],
  ])('the values of %s are counted without the characters of texts', (text, values) => {
    expect(count(text).values).toBe(values)
  })

  it('a text that is read in parts has the same count', () => {
    const bytes = Buffer.from('["a\\",b",{"c":"[,"},[1,2]]')
    const counter = createValueCounter(1_000)
    for (let at = 0; at < bytes.length; at++) counter.read(bytes, at, at + 1)
    expect(counter.values).toBe(count(bytes.toString()).values)
  })

  it('counting ends at the limit', () => {
    const counter = count(`[${'[],'.repeat(10_000)}[]]`, 100)
    expect(counter.values).toBe(101)
    expect(counter.bytesRead).toBeLessThan(210)
  })

  it.each([
    ['empty arrays', `[${'[],'.repeat(jsonValuesMax)}[]]`],
    ['nested arrays', '['.repeat(jsonValuesMax + 1)],
    ['fields', `{${'"a":1,'.repeat(jsonValuesMax)}"b":1}`],
  ])('a text with too many %s is recognised', (_, text) => {
    expect(hasTooManyValues(Buffer.from(text))).toBe(true)
  })

  it('a long text is one value', () => {
    expect(hasTooManyValues(Buffer.from(`["${',['.repeat(jsonValuesMax)}"]`))).toBe(false)
  })
})
