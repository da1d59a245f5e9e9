import { describe, expect, it } from 'vitest'
import { Capacity } from './capacity.ts'

describe('the capacity for requests in progress', () => {
  it('units can be taken until all are used, and again once they are released', () => {
    const capacity = new Capacity(10)
    const first = capacity.tryTake(6)
    expect(capacity.tryTake(5)).toBeUndefined()
    expect(capacity.tryTake(4)).toBeDefined()
    first?.()
    first?.()
    expect(capacity.tryTake(6)).toBeDefined()
    expect(capacity.tryTake(1)).toBeUndefined()
  })

  it('a request that is larger than the whole capacity can be in progress alone', () => {
    const capacity = new Capacity(10)
    const release = capacity.tryTake(50)
    expect(release).toBeDefined()
    expect(capacity.tryTake(1)).toBeUndefined()
    release?.()
    expect(capacity.tryTake(1)).toBeDefined()
  })

  it('waiting requests start in the order of their arrival', async () => {
    const capacity = new Capacity(1)
    const started: string[] = []
    const release = capacity.tryTake()
    const wait = async (name: string) => {
      const done = await capacity.take()
      started.push(name)
      done?.()
    }
    const all = Promise.all([wait('a'), wait('b'), wait('c')])
    expect(started).toEqual([])
    release?.()
    await all
    expect(started).toEqual(['a', 'b', 'c'])
  })

  it('a request does not wait longer than allowed', async () => {
    const capacity = new Capacity(1)
    capacity.tryTake()
    expect(await capacity.take(1, 1)).toBeUndefined()
  })
})
