import { afterEach, describe, expect, it } from 'vitest'
import { openTestEngine, type TestEngine, toTexts } from '../../../test/engine/test-engine.ts'
import { bytes, newItems } from '../../../test/make.ts'

describe('a held queue', () => {
  let given: TestEngine
  const open = async () => {
    given = await openTestEngine()
    return given
  }

  afterEach(() => given.close())

  it('the engine accepts requests for a held queue, and processes them in order once it is released', async () => {
    const { engine, lease } = await open()
    engine.hold('orders', true)
    await engine.readStats('orders')
    const producing = engine.produce('orders', newItems(1))
    const leasing = lease('a')
    await Promise.resolve()
    expect(await engine.readStats('orders')).toMatchObject({ produceWaiting: 1, leaseWaiting: 1 })
    engine.hold('orders', false)
    await producing
    expect(toTexts((await leasing).items)).toEqual(['item-0'])
  })

  it('processes held requests of different kinds in order of arrival', async () => {
    for (const order of ['complete retry', 'retry complete', 'extend retry', 'retry extend'] as const) {
      const { engine, lease } = await open()
      await engine.produce('orders', newItems(1))
      const { items, partition } = await lease('w')
      const ids = items.map(({ id }) => id)
      const acts = {
        complete: () => engine.complete('orders', partition, ids),
        retry: () => engine.retry('orders', partition, [{ id: ids[0] ?? '' }]),
        extend: () => engine.extend('orders', partition, ids),
      }
      engine.hold('orders', true)
      const done = order.split(' ').map((act) => acts[act as keyof typeof acts]())
      const outcomes = Promise.allSettled<unknown>(done)
      engine.hold('orders', false)
      const isBothFine = order === 'extend retry'
      expect([order, (await outcomes).map(({ status }) => status)]).toEqual([
        order,
        ['fulfilled', isBothFine ? 'fulfilled' : 'rejected'],
      ])
      await engine.close()
    }
  })

  it('the engine serves a held lease with the items that were there when it arrived, and can be held again', async () => {
    const { engine, lease } = await open()
    await engine.produce('orders', [{ payload: bytes('low') }])
    engine.hold('orders', true)
    const first = lease('first')
    await engine.readStats('orders')
    const urgent = engine.produce('orders', [{ payload: bytes('high'), priority: 9 }])
    const second = lease('second')
    await expect
      .poll(async () => engine.readStats('orders'))
      .toMatchObject({ leaseWaiting: 2, produceWaiting: 1 })
    engine.hold('orders', false)
    await urgent
    expect(toTexts((await first).items)).toEqual(['low'])
    expect(toTexts((await second).items)).toEqual(['high'])
    engine.hold('orders', true)
    const held = engine.produce('orders', newItems(1))
    await expect.poll(async () => engine.readStats('orders')).toMatchObject({ produceWaiting: 1 })
    engine.hold('orders', false)
    await held
    await engine.produce('orders', newItems(1))
  })
})
