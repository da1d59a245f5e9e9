import { describe, expect, it } from 'vitest'
import fc from './fast-check.ts'
import { testSeed, withRandom } from './random-test.ts'

describe('a random test', () => {
  it('a failure names its seed and the command that reproduces it', async () => {
    const failure = withRandom(() => Promise.reject(new Error('no match')), 3)
    await expect(failure).rejects.toThrow(`with seed ${testSeed(3)}: no match`)
    await expect(failure).rejects.toThrow(`To reproduce: REDRIVE_TEST_SEED=${testSeed(3)} `)
    await expect(failure).rejects.toThrow(
      "npx vitest run server/test/random-test.test.ts -t 'a random test a failure names its seed",
    )
  })

  it('a failed property names its seed and the command that reproduces it', async () => {
    const property = fc.property(fc.nat(), (number) => number < 5)
    expect(() => fc.assert(property)).toThrow(`To reproduce: REDRIVE_TEST_SEED=${testSeed()} `)
    const later = fc.asyncProperty(fc.nat(), async (number) => number < 5)
    await expect(fc.assert(later)).rejects.toThrow(`To reproduce: REDRIVE_TEST_SEED=${testSeed()} `)
  })

  it('the same seed gives the same random numbers, and the next run gets others', async () => {
    const numbers: number[] = []
    for (const run of [0, 0, 1]) await withRandom(async ({ next }) => void numbers.push(next()), run)
    expect(numbers[0]).toBe(numbers[1])
    expect(numbers[0]).not.toBe(numbers[2])
  })
})
