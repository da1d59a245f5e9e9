import { describe, expect, it } from 'vitest'
import { jsonValuesMax } from '../../../core/json-values.ts'
import { checkJsonSize } from './json-size.ts'

describe('the size check of a JSON body', () => {
  it.each([
    ['empty arrays', `[${'[],'.repeat(jsonValuesMax)}[]]`],
    ['nested arrays', '['.repeat(jsonValuesMax + 1)],
    ['fields', `{${'"a":1,'.repeat(jsonValuesMax)}"b":1}`],
  ])('a body with too many %s is refused', async (_, text) => {
    await expect(checkJsonSize(Buffer.from(text))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  it('a body with a long text is accepted', async () => {
    await expect(checkJsonSize(Buffer.from(`["${',['.repeat(jsonValuesMax)}"]`))).resolves.toBeUndefined()
  })
})
