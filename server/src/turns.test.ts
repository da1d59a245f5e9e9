import { describe, expect, it } from 'vitest'
import { takeTurn } from './turns.ts'

describe('turns of the event loop', () => {
  it('only one part of all waiting work runs per turn of the event loop, in the order of arrival', async () => {
    const events: string[] = []
    let isDone = false
    const countTurns = (): void => {
      events.push('turn')
      if (!isDone) setImmediate(countTurns)
    }
    const work = async (name: string): Promise<void> => {
      for (let part = 0; part < 3; part++) {
        await takeTurn()
        events.push(name)
      }
    }
    setImmediate(countTurns)
    await Promise.all([work('a'), work('b'), work('c')])
    isDone = true

    const parts = events.filter((event) => event !== 'turn')
    expect(parts).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c'])
    const areAdjacent = events.some((event, index) => event !== 'turn' && events[index + 1] === event)
    expect(areAdjacent).toBe(false)
    const pairs = events.filter(
      (event, index) => event !== 'turn' && (events[index + 1] ?? 'turn') !== 'turn',
    )
    expect(pairs).toEqual([])
  })
})
