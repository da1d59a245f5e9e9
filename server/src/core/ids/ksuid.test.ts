import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import {
  convertToUuid,
  createKsuids,
  findKsuidProblem,
  findKsuidRange,
  ksuidMax,
  ksuidMin,
  readKsuidTime,
} from './ksuid.ts'

const noon = Date.UTC(2026, 10, 15, 12) * 1000

describe('item ids', () => {
  it('an id has 27 base62 digits and contains the second in which it was created', () => {
    const [id = ''] = createKsuids(undefined, noon + 123_456, 1, Math.random)
    expect(findKsuidProblem(id)).toBeUndefined()
    expect(readKsuidTime(id)).toBe(noon)
    const [first = ''] = createKsuids(undefined, noon, 1, () => 0)
    expect(readKsuidTime(first)).toBe(noon)
  })

  it('the ids of a partition strictly increase, also if the clock is set back', () => {
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
          for (const id of createKsuids(last, now, count, () => chance)) {
            expect(findKsuidProblem(id)).toBeUndefined()
            if (last !== undefined) expect(id > last).toBe(true)
            last = id
          }
        }
      }),
    )
  })

  it('partitions that create their first id in the same microsecond get different ids', () => {
    const ids = Array.from({ length: 1000 }, () => createKsuids(undefined, noon, 1, Math.random)[0])
    expect(new Set(ids).size).toBe(1000)
  })

  it('an id of the next second is greater', () => {
    const [before = ''] = createKsuids(undefined, noon + 999_999, 1, () => 0.99)
    const [after = ''] = createKsuids(undefined, noon + 1_000_000, 1, () => 0)
    expect(after > before).toBe(true)
  })

  it('texts that are not ids are recognised, with the reason', () => {
    expect(findKsuidProblem('short')).toBe('length')
    expect(findKsuidProblem(`${ksuidMin.slice(1)}!`)).toBe('range')
    expect(findKsuidProblem(ksuidMin)).toBeUndefined()
    expect(findKsuidProblem(ksuidMax)).toBeUndefined()
    expect(findKsuidProblem('aWgEPTl1tmebfsQzFP4bxwgy80W')).toBe('range')
    expect(findKsuidProblem('z'.repeat(27))).toBe('range')
  })

  it('the UUID of an id consists of its first 16 bytes', () => {
    expect(convertToUuid(ksuidMax)).toBe('ffffffff-ffff-ffff-ffff-ffffffffffff')
    expect(convertToUuid('0ujtsYcgvSTl8PAuAdqWYSMnLOv')).toBe('0669f7ef-b5a1-cd34-b5f9-9d1154fb6853')
  })

  it('the range of a UUID contains every id with that UUID, and no other id', () => {
    const uuidOf = (id: string) => convertToUuid(id)
    for (const id of [ksuidMin, ksuidMax, '0ujtsYcgvSTl8PAuAdqWYSMnLOv']) {
      const range = findKsuidRange(uuidOf(id).toUpperCase())
      expect(range && range.first <= id && id <= range.last).toBe(true)
      expect([range?.first ?? '', range?.last ?? ''].map(uuidOf)).toEqual([uuidOf(id), uuidOf(id)])
    }
    const next = findKsuidRange('0669f7ef-b5a1-cd34-b5f9-9d1154fb6854')
    expect((next?.first ?? '') > (findKsuidRange('0669f7ef-b5a1-cd34-b5f9-9d1154fb6853')?.last ?? '')).toBe(
      true,
    )
    expect(findKsuidRange('not a uuid')).toBeUndefined()
  })
})
