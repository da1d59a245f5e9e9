import { openEngine } from '../../server/src/engine/open.ts'
import { openStorage, type StoreTarget } from '../../server/src/storage/open.ts'
import { createSystemClock } from '../../server/src/system-clock.ts'
import { type Consume, type Peer, payload } from './peer.ts'

const queue = 'bench'
const bytes = Buffer.from(JSON.stringify(payload))

export function redrive(name: string, createTarget: () => Promise<StoreTarget>): Peer {
  return {
    name,
    calls: 'produce() of one or of 1000; lease() and complete(), of one or of up to 1000. In this process.',
    open: async (batch) => {
      const clock = createSystemClock()
      const storage = await openStorage(await createTarget(), { clock })
      const engine = openEngine(storage, { clock, requestsMax: 100_000 })
      await engine.createQueue({ name: queue })
      const consume: Consume = {
        kind: 'calls',
        call: async (caller, signal) => {
          const options = { clientId: `caller-${caller}`, countMax: batch, timeoutMs: 60_000, signal }
          const leased = await engine.lease(queue, options).catch((error: unknown) => {
            if (signal.aborted) return null
            throw error
          })
          if (leased === null) return 0
          await engine.complete(
            queue,
            leased.partition,
            leased.items.map(({ id }) => id),
          )
          return leased.items.length
        },
      }
      return {
        produce: async (count) => {
          await engine.produce(
            queue,
            Array.from({ length: count }, () => ({ payload: bytes })),
          )
        },
        consume,
        close: async () => {
          await engine.close()
          await storage.close()
        },
      }
    },
  }
}
