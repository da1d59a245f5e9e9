import { describe, expect, it } from 'vitest'
import { jsonValuesMax } from '../../../core/text/json-values.ts'
import { checkJsonSize } from './json-size.ts'

describe('the size check of a JSON body', () => {
  it.each([
    ['empty arrays', `[${'[],'.repeat(jsonValuesMax)}[]]`],
    ['nested arrays', '['.repeat(jsonValuesMax + 1)],
    ['fields', `{${'"a":1,'.repeat(jsonValuesMax)}"b":1}`],
  ])('a body with too many %s is refused', (_, text) => {
    expect(() => checkJsonSize(Buffer.from(text))).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  })

  it('a body with a long text is accepted', () => {
    expect(() => checkJsonSize(Buffer.from(`["${',['.repeat(jsonValuesMax)}"]`))).not.toThrow()
  })
})
