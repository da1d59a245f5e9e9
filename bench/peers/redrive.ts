import type { NewQueue } from '../../server/src/core/items/queue.ts'
import { createEngine } from '../../server/src/engine/create-engine.ts'
import type { Engine } from '../../server/src/engine/engine.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import { openStorage, type StoreTarget } from '../../server/src/storage/open-storage.ts'
import { createSystemClock } from '../../server/src/system-clock.ts'
import { type Consume, type Peer, payload } from './peer.ts'

const queue = 'bench'
const bytes = Buffer.from(JSON.stringify(payload))

export function createRedrivePeer(name: string, createTarget: () => Promise<StoreTarget>): Peer {
  return {
    name,
    calls: 'produce() of one or of 1000; lease() and complete(), of one or of up to 1000. In this process.',
    open: async (batch) => {
      const { engine, close } = await openRedrive(await createTarget(), [{ name: queue }])
      const consume: Consume = {
        kind: 'calls',
        call: (caller, signal) => leaseAndComplete(engine, { queue, caller, countMax: batch, signal }),
      }
      return { produce: (count) => produceItems(engine, queue, count), consume, close }
    },
  }
}

export type OpenedRedrive = Readonly<{ storage: Storage; engine: Engine; close(): Promise<void> }>

/** Opens Redrive in this process, and creates missing queues in the given order. */
export async function openRedrive(
  target: StoreTarget,
  queues: readonly NewQueue[] = [],
): Promise<OpenedRedrive> {
  const clock = createSystemClock()
  const storage = await openStorage(target, { clock })
  const engine = createEngine(storage, { clock, requestsMax: 100_000 })
  for (const wanted of queues) {
    if ((await engine.getQueue(wanted.name)) === null) await engine.createQueue(wanted)
  }
  const close = async () => {
    await engine.close()
    await storage.close()
  }
  return { storage, engine, close }
}

export async function produceItems(engine: Engine, queue: string, count: number): Promise<void> {
  await engine.produce(
    queue,
    Array.from({ length: count }, () => ({ payload: bytes })),
  )
}

/** Resolves with the number of items; 0 if the signal aborts first. */
export async function leaseAndComplete(
  engine: Engine,
  { queue, caller, countMax, signal }: LeaseCall,
): Promise<number> {
  const options = { clientId: `caller-${caller}`, countMax, timeoutMs: 60_000, signal }
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
}

export type LeaseCall = Readonly<{ queue: string; caller: number; countMax: number; signal: AbortSignal }>
