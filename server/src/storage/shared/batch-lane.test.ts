import { describe, expect, it } from 'vitest'
import { BatchLane } from './batch-lane.ts'

type Request = { readonly name: number; readonly weight: number }

/** A lane whose batches end when told to. */
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
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a lane', () => {
  it('takes what came in one turn together, and the rest when that is done', async () => {
    const { lane, batches, add } = laneOf(1)
    add(3)
    await turn()
    add(2)
    await turn()
    expect(batches.map(({ names }) => names)).toEqual([[0, 1, 2]])
    expect({ waiting: lane.waiting, inFlight: lane.inFlight }).toEqual({ waiting: 2, inFlight: 3 })
    batches[0]?.end()
    await turn()
    expect(batches.map(({ names }) => names.length)).toEqual([3, 2])
  })

  it('divides many among its batches, so that they do not come back all at once', async () => {
    const { batches, add } = laneOf(2)
    add(256)
    await turn()
    expect(batches.map(({ names }) => names.length)).toEqual([128, 128])
    batches[0]?.end()
    await turn()
    add(128)
    await turn()
    expect(batches.map(({ names }) => names.length)).toEqual([128, 128, 128])
  })

  it('lets go of those that are over, and weighs only the others', async () => {
    const { lane, batches, add } = laneOf(1, 10)
    add(1)
    await turn()
    add(10, 5)
    expect(lane.removeWhere(({ name }) => name % 2 === 1).map(({ name }) => name)).toEqual([1, 3, 5, 7, 9])
    batches[0]?.end()
    await turn()
    expect(batches[1]?.names).toEqual([0, 2])
    expect(lane.waiting).toBe(3)
  })

  it('does not divide a few', async () => {
    const { lane, batches, add } = laneOf(2)
    add(60)
    await turn()
    add(60)
    await turn()
    add(60)
    await turn()
    expect(batches.map(({ names }) => names.length)).toEqual([60, 60])
    expect(lane.waiting).toBe(60)
  })

  it('takes no more weight than it may, but always something', async () => {
    const { batches, add } = laneOf(1, 10)
    add(5, 4)
    add(1, 99)
    for (let at = 0; at < 4; at++) {
      await turn()
      batches[at]?.end()
    }
    expect(batches.map(({ names }) => names)).toEqual([[0, 1], [2, 3], [4], [0]])
  })

  it('keeps what is held, and gives up what is withdrawn', async () => {
    const { lane, batches } = laneOf(1)
    lane.hold(true)
    const [first, second] = [
      { name: 1, weight: 1 },
      { name: 2, weight: 1 },
    ]
    lane.add(first)
    lane.add(second)
    await turn()
    expect(batches).toEqual([])
    expect(lane.remove(first)).toBe(true)
    expect(lane.remove(first)).toBe(false)
    lane.hold(false)
    await turn()
    expect(batches.map(({ names }) => names)).toEqual([[2]])
  })

  it('is idle when all its batches are done, those also that followed', async () => {
    const { lane, batches, add } = laneOf(1)
    add(1)
    await turn()
    add(1)
    let isIdle = false
    const idle = lane.whenIdle().then(() => {
      isIdle = true
    })
    batches[0]?.end()
    await turn()
    expect(isIdle).toBe(false)
    batches[1]?.end()
    await idle
    expect(lane.inFlight).toBe(0)
  })
})
