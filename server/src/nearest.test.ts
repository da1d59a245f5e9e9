import { describe, expect, it } from 'vitest'
import { editDistance, nearest } from './nearest.ts'

describe('edit distance', () => {
  it.each([
    ['port', 'port', 0],
    ['prot', 'port', 1],
    ['por', 'port', 1],
    ['ports', 'port', 1],
    ['part', 'port', 1],
    ['', 'port', 4],
    ['kitten', 'sitting', 3],
  ])('from %j to %j is %d', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance)
    expect(editDistance(to, from)).toBe(distance)
  })
})

describe('the nearest candidate', () => {
  const names = ['port', 'host', 'store', 'log.level', 'log.format']

  it('is the one with the fewest slips', () => {
    expect(nearest('prot', names)).toBe('port')
    expect(nearest('log.levle', names)).toBe('log.level')
    expect(nearest('PORT', names)).toBe('port')
  })

  it('is found by its last part', () => {
    expect(nearest('format', names)).toBe('log.format')
  })

  it('is none when nothing is near', () => {
    expect(nearest('colour', names)).toBeUndefined()
    expect(nearest('x', names)).toBeUndefined()
  })
})
