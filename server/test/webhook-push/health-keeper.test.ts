/** The version of a consumer's state, when the write of a change and a read of it overlap. */
import { describe, expect, it } from 'vitest'
import { newDelivery, pauseDelivery } from '../../src/core/webhook/delivery/consumer-delivery.ts'
import { ConsumerLane } from '../../src/drivers/webhook/dispatch/consumer-lane.ts'
import { HealthKeeper } from '../../src/drivers/webhook/dispatch/health-keeper.ts'
import type { DeliveryChangeCall } from '../../src/drivers/webhook/dispatch/outcome-writer.ts'
import type { StoredDelivery } from '../../src/storage/contract/deliveries.ts'
import { noon } from '../make.ts'
import { dispatchRules } from './dispatch-system.ts'

const consumer = {
  number: 1,
  channelId: 'c',
  id: 'k',
  name: 'k',
  token: 't',
  xid: 'x',
  createdAt: noon,
  changedAt: noon,
  callbackUrl: 'http://a.example/',
  type: 'push',
  queue: 'q',
  deadQueue: 'd',
} as const
const stored = (version: number, delivery = newDelivery): StoredDelivery => ({
  consumer,
  version,
  delivery,
  secrets: null,
})

function create() {
  const lane = new ConsumerLane(stored(1), noon)
  const calls: DeliveryChangeCall[] = []
  const reloaded: ConsumerLane[] = []
  const keeper = new HealthKeeper({
    registry: { lanes: [lane], reload: async (each) => void reloaded.push(each) },
    outcomes: { change: (call) => void calls.push(call) },
    clock: { now: () => noon },
    rules: dispatchRules,
    onError: (error) => {
      throw error
    },
  })
  // The first failure changes the state: it is stored with the next pass.
  keeper.record(lane, false, false)
  keeper.pass()
  const call = calls[0] as DeliveryChangeCall
  return { lane, call, reloaded }
}

describe('the state of a consumer in memory', () => {
  it('a lane has the next version once its change is stored', () => {
    const { lane, call, reloaded } = create()
    call.onWritten(true)
    expect([lane.version, reloaded]).toEqual([2, []])
  })

  it('a lane takes over the next change also if its own change was read before its write was confirmed', () => {
    const { lane, call } = create()
    lane.update(stored(2, call.command.document), noon)
    call.onWritten(true)
    expect(lane.version).toBe(2)
    lane.update(stored(3, pauseDelivery(newDelivery, 'by hand', noon)), noon)
    expect(lane.delivery.paused).toMatchObject({ reason: 'by hand' })
  })

  it('a lane is not replaced by a read that started before its change was stored', () => {
    const { lane, call } = create()
    call.onWritten(true)
    lane.update(stored(1), noon)
    expect([lane.version, lane.delivery.failingSince]).toEqual([2, noon])
  })

  it('a lane is read again if another server was faster', () => {
    const { lane, call, reloaded } = create()
    call.onWritten(false)
    expect([lane.version, reloaded]).toEqual([1, [lane]])
  })
})
