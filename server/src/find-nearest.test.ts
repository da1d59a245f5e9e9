import { describe, expect, it } from 'vitest'
import { editDistance, findNearest } from './find-nearest.ts'

describe('editDistance', () => {
  it.each([
    ['port', 'port', 0],
    ['prot', 'port', 1],
    ['por', 'port', 1],
    ['ports', 'port', 1],
    ['part', 'port', 1],
    ['', 'port', 4],
    ['kitten', 'sitting', 3],
  ])('the edit distance from %j to %j is %d', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance)
    expect(editDistance(to, from)).toBe(distance)
  })
})

describe('findNearest', () => {
  const names = ['port', 'host', 'store', 'log.level', 'log.format']

  it('the nearest candidate has the fewest edits', () => {
    expect(findNearest('prot', names)).toBe('port')
    expect(findNearest('log.levle', names)).toBe('log.level')
    expect(findNearest('PORT', names)).toBe('port')
  })

  it('a candidate is found by its last part', () => {
    expect(findNearest('format', names)).toBe('log.format')
  })

  it('the result is undefined if no candidate is similar', () => {
    expect(findNearest('colour', names)).toBeUndefined()
    expect(findNearest('x', names)).toBeUndefined()
  })
})
