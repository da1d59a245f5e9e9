/**
 * An engine on a store in memory, with the queue `orders` and a clock that moves only when a test advances
 * it.
 */
import { expect } from 'vitest'
import type { NewQueue } from '../../src/core/items/queue.ts'
import type { Instant } from '../../src/core/time/instant.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine, LeasedItems } from '../../src/engine/engine.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { noon, toText } from '../make.ts'

export type TestEngine = Readonly<{
  engine: Engine
  storage: Storage
  clock: { at: Instant }
  /** Leases items of `orders`. */
  lease(clientId: string, countMax?: number, timeoutMs?: number): Promise<LeasedItems>
  /** Closes engine and store. The counts of the store are right. */
  close(): Promise<void>
}>

export async function openTestEngine(queue: Partial<NewQueue> = {}): Promise<TestEngine> {
  const clock = { at: noon }
  const storage = await openStorage({ kind: 'memory' })
  const engine = createEngine(storage, { clock: { now: () => clock.at }, isTicking: false })
  await engine.createQueue({ name: 'orders', ...queue })
  return {
    engine,
    storage,
    clock,
    lease: (clientId, countMax = 1, timeoutMs = 5_000) =>
      engine.lease('orders', { clientId, countMax, timeoutMs }),
    close: async () => {
      await engine.close()
      expect(await storage.verify()).toEqual([])
      await storage.close()
    },
  }
}

export function toTexts(items: readonly Readonly<{ payload: Uint8Array }>[]): string[] {
  return items.map(({ payload }) => toText(payload))
}
