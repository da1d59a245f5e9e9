import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { usPerSecond } from '../../src/core/time/instant.ts'
import { defaultDeliverySettings, newDelivery } from '../../src/core/webhook/delivery/consumer-delivery.ts'
import { ConsumerLane } from '../../src/drivers/webhook/dispatch/consumer-lane.ts'
import type { JobOutcome } from '../../src/drivers/webhook/dispatch/outcome-writer.ts'
import { OutcomeWriter } from '../../src/drivers/webhook/dispatch/outcome-writer.ts'
import type { Command } from '../../src/storage/contract/storage.ts'
import type { Consumer } from '../../src/storage/contract/webhooks.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { noon } from '../make.ts'
import {
  broadcast,
  countsOf,
  type DispatchNode,
  putChannel,
  putConsumer,
  startNode,
} from './dispatch-system.ts'
import { type Receiver, startReceiver } from './receivers.ts'

describe('the limits of a consumer', () => {
  const createLane = (servers: number) => {
    const settings = { ...defaultDeliverySettings, pushesPerSecondMax: 10, parallelMax: 5 }
    const consumer = { queue: 'q' } as Consumer
    const lane = new ConsumerLane(
      { consumer, version: 1, delivery: { ...newDelivery, settings }, secrets: null },
      noon,
    )
    lane.servers = servers
    return lane
  }
  /** Pushes that may start within ten seconds, if one is wanted every 10 ms. */
  const countPushes = (lane: ConsumerLane) => {
    let pushes = 0
    for (let ms = 0; ms < 10_000; ms += 10)
      if (lane.tryTakeToken(noon + (ms * usPerSecond) / 1_000)) pushes += 1
    return pushes
  }

  it('the pushes per second are divided among the servers', () => {
    for (const servers of [1, 2, 5]) {
      const share = 100 / servers
      const pushes = countPushes(createLane(servers))
      expect(pushes, String(servers)).toBeGreaterThan(0.85 * share)
      expect(pushes, String(servers)).toBeLessThanOrEqual(share + 1)
    }
  })

  it('the parallel pushes are divided among the servers, and each server may push one job', () => {
    expect([1, 2, 5, 9].map((servers) => createLane(servers).parallelMax)).toEqual([5, 2, 1, 1])
  })
})

describe('servers on one store', needsOf('PostgreSQL'), () => {
  let store: TestStore
  let nodes: DispatchNode[] = []
  let receiver: Receiver
  beforeAll(async () => {
    store = await createTestStore('PostgreSQL')
    nodes = [await startNode(store), await startNode(store)]
    receiver = await startReceiver()
  })
  afterAll(async () => {
    for (const node of nodes) await node.close()
    await receiver.close()
    await store.drop()
  })

  it('servers that push count each other, and share the limits', async () => {
    const [first, second] = nodes as [DispatchNode, DispatchNode]
    await putChannel(first, 'c')
    const consumer = await putConsumer(first, 'c', 'k', receiver.url)
    expect(first.dispatcher.counts().servers).toBe(1)
    // Both servers lease jobs once there are more than one wants at a time.
    await expect
      .poll(
        async () => {
          await broadcast(first, 'c', 200)
          await Promise.all(nodes.map((node) => node.dispatcher.pass()))
          return nodes.map((node) => node.dispatcher.counts().servers)
        },
        { timeout: 30_000, interval: 50 },
      )
      .toEqual([2, 2])
    await expect.poll(async () => (await countsOf(second, consumer)).queued, { timeout: 30_000 }).toBe(0)
  })
})

describe('outcomes of pushes', () => {
  it('jobs with large payloads that may die are written in several steps', async () => {
    const written: number[] = []
    const write = async (commands: readonly Command[]) => {
      written.push(commands.flatMap((command) => (command.op === 'retry' ? command.items : [])).length)
      return commands.map(() => ({ isSettled: true }))
    }
    const writer = new OutcomeWriter({
      engine: () => ({ write: write as never }),
      clock: { now: () => noon },
      onError: (error) => {
        throw error
      },
      onWritten: () => {},
    })
    for (let n = 0; n < 40; n++) {
      const error = { errorCode: 'http_410' }
      writer.add({
        queue: 'q',
        itemId: `item-${n}`,
        leaseDeadline: noon + usPerSecond,
        outcome: { kind: 'dead', error } as JobOutcome['outcome'],
        attempt: null,
        payloadBytes: 1_024 * 1_024,
      })
    }
    await writer.waitUntilIdle()
    expect(written).toEqual(new Array(10).fill(4))
  })
})
