import { describe, expect, it } from 'vitest'
import fc from '../../test/fast-check.ts'
import {
  ksuidMax,
  ksuidMin,
  ksuidProblem,
  ksuidRangeOfUuid,
  ksuidTime,
  ksuidToUuid,
  nextKsuids,
} from './ksuid.ts'

const noon = Date.UTC(2026, 10, 15, 12) * 1000

describe('item ids', () => {
  it('are 27 base62 digits that carry the second they were made in', () => {
    const [id = ''] = nextKsuids(undefined, noon + 123_456, 1, Math.random)
    expect(ksuidProblem(id)).toBeUndefined()
    expect(ksuidTime(id)).toBe(noon)
    const [first = ''] = nextKsuids(undefined, noon, 1, () => 0)
    expect(ksuidTime(first)).toBe(noon)
  })

  it('strictly increase within a partition, whatever the clock and the chance do', () => {
    const clockSteps = fc.array(
      fc.record({
        stepUs: fc.integer({ min: -5_000_000, max: 5_000_000 }),
        count: fc.integer({ min: 1, max: 70 }),
      }),
      { maxLength: 20 },
    )
    fc.assert(
      fc.property(clockSteps, fc.double({ min: 0, max: 0.999999, noNaN: true }), (steps, chance) => {
        let last: string | undefined
        let now = noon
        for (const { stepUs, count } of steps) {
          now += stepUs
          for (const id of nextKsuids(last, now, count, () => chance)) {
            expect(ksuidProblem(id)).toBeUndefined()
            if (last !== undefined) expect(id > last).toBe(true)
            last = id
          }
        }
      }),
    )
  })

  it('differ between partitions that start in the same microsecond', () => {
    const made = Array.from({ length: 1000 }, () => nextKsuids(undefined, noon, 1, Math.random)[0])
    expect(new Set(made).size).toBe(1000)
  })

  it('follow the time across seconds', () => {
    const [before = ''] = nextKsuids(undefined, noon + 999_999, 1, () => 0.99)
    const [after = ''] = nextKsuids(undefined, noon + 1_000_000, 1, () => 0)
    expect(after > before).toBe(true)
  })

  it('are told apart from texts that are none', () => {
    expect(ksuidProblem('short')).toBe('length')
    expect(ksuidProblem(`${ksuidMin.slice(1)}!`)).toBe('range')
    expect(ksuidProblem(ksuidMin)).toBeUndefined()
    expect(ksuidProblem(ksuidMax)).toBeUndefined()
    expect(ksuidProblem('aWgEPTl1tmebfsQzFP4bxwgy80W')).toBe('range')
    expect(ksuidProblem('z'.repeat(27))).toBe('range')
  })

  it('are shown as a UUID made of their first 16 bytes', () => {
    expect(ksuidToUuid(ksuidMax)).toBe('ffffffff-ffff-ffff-ffff-ffffffffffff')
    expect(ksuidToUuid('0ujtsYcgvSTl8PAuAdqWYSMnLOv')).toBe('0669f7ef-b5a1-cd34-b5f9-9d1154fb6853')
  })

  it('are found by that UUID in a range that holds every id with it, and no other', () => {
    const uuidOf = (id: string) => ksuidToUuid(id)
    for (const id of [ksuidMin, ksuidMax, '0ujtsYcgvSTl8PAuAdqWYSMnLOv']) {
      const range = ksuidRangeOfUuid(uuidOf(id).toUpperCase())
      expect(range && range.first <= id && id <= range.last).toBe(true)
      expect([range?.first ?? '', range?.last ?? ''].map(uuidOf)).toEqual([uuidOf(id), uuidOf(id)])
    }
    const next = ksuidRangeOfUuid('0669f7ef-b5a1-cd34-b5f9-9d1154fb6854')
    expect((next?.first ?? '') > (ksuidRangeOfUuid('0669f7ef-b5a1-cd34-b5f9-9d1154fb6853')?.last ?? '')).toBe(
      true,
    )
    expect(ksuidRangeOfUuid('no uuid')).toBeUndefined()
  })
})
