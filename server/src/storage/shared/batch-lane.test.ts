import { describe, expect, it } from 'vitest'
import { BatchLane } from './batch-lane.ts'

type Request = { readonly name: number; readonly weight: number }

/** A lane whose batches end when the test ends them. */
function laneOf(batchesMax: number, weightMax = 1_000) {
  const batches: { names: number[]; end(): void }[] = []
  const lane = new BatchLane<Request>({ weightMax, batchesMax }, (batch) => {
    return new Promise((end) => batches.push({ names: batch.map(({ name }) => name), end }))
  })
  const add = (count: number, weight = 1) => {
    for (let name = 0; name < count; name++) lane.add({ name, weight })
  }
  return { lane, batches, add }
}
const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe('a batch lane', () => {
  it('requests of one tick share a batch, and later ones wait for its end', async () => {
    const { lane, batches, add } = laneOf(1)
    add(3)
    await nextTick()
    add(2)
    await nextTick()
    expect(batches.map(({ names }) => names)).toEqual([[0, 1, 2]])
    expect({ waiting: lane.waiting, inFlight: lane.inFlight }).toEqual({ waiting: 2, inFlight: 3 })
    batches[0]?.end()
    await nextTick()
    expect(batches.map(({ names }) => names.length)).toEqual([3, 2])
  })

  it('many requests are divided among the batches in progress', async () => {
    const { batches, add } = laneOf(2)
    add(256)
    await nextTick()
    expect(batches.map(({ names }) => names.length)).toEqual([128, 128])
    batches[0]?.end()
    await nextTick()
    add(128)
    await nextTick()
    expect(batches.map(({ names }) => names.length)).toEqual([128, 128, 128])
  })

  it('removed requests do not count in the weight of a batch', async () => {
    const { lane, batches, add } = laneOf(1, 10)
    add(1)
    await nextTick()
    add(10, 5)
    expect(lane.removeWhere(({ name }) => name % 2 === 1).map(({ name }) => name)).toEqual([1, 3, 5, 7, 9])
    batches[0]?.end()
    await nextTick()
    expect(batches[1]?.names).toEqual([0, 2])
    expect(lane.waiting).toBe(3)
  })

  it('a few requests are not divided', async () => {
    const { lane, batches, add } = laneOf(2)
    add(60)
    await nextTick()
    add(60)
    await nextTick()
    add(60)
    await nextTick()
    expect(batches.map(({ names }) => names.length)).toEqual([60, 60])
    expect(lane.waiting).toBe(60)
  })

  it('a batch has at most the allowed weight, but at least one request', async () => {
    const { batches, add } = laneOf(1, 10)
    add(5, 4)
    add(1, 99)
    for (let at = 0; at < 4; at++) {
      await nextTick()
      batches[at]?.end()
    }
    expect(batches.map(({ names }) => names)).toEqual([[0, 1], [2, 3], [4], [0]])
  })

  it('a held lane keeps its requests, and a waiting request can be removed', async () => {
    const { lane, batches } = laneOf(1)
    lane.hold(true)
    const [first, second] = [
      { name: 1, weight: 1 },
      { name: 2, weight: 1 },
    ]
    lane.add(first)
    lane.add(second)
    await nextTick()
    expect(batches).toEqual([])
    expect(lane.remove(first)).toBe(true)
    expect(lane.remove(first)).toBe(false)
    lane.hold(false)
    await nextTick()
    expect(batches.map(({ names }) => names)).toEqual([[2]])
  })

  it('the lane is idle when all batches are done, also the later ones', async () => {
    const { lane, batches, add } = laneOf(1)
    add(1)
    await nextTick()
    add(1)
    let isIdle = false
    const idle = lane.waitUntilIdle().then(() => {
      isIdle = true
    })
    batches[0]?.end()
    await nextTick()
    expect(isIdle).toBe(false)
    batches[1]?.end()
    await idle
    expect(lane.inFlight).toBe(0)
  })
})
