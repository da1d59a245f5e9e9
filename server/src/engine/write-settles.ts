/** Requests to settle leases of one queue (complete, retry, extend), and how a batch of them is written. */
import type { Complete, Extend, ItemChange, Retry, SettleResult } from '../storage/contract/items.ts'
import type { Request } from './call-lane.ts'
import { itemRefused } from './item-refused-error.ts'
import type { RoomParts } from './queue-runtime-parts.ts'
import { oneByOne, whenUnknown } from './rejected-batch.ts'

/** Who completes is told that it is done, and no more. */
export type Completing = Request<void> & Readonly<{ command: Complete }>
export type Returning = Request<readonly ItemChange[]> & Readonly<{ command: Retry | Extend }>

export function writeCompletes(batch: readonly Completing[], parts: RoomParts): Promise<void> {
  return writeSettles(batch, parts, ({ resolve }) => resolve())
}

export function writeReturns(batch: readonly Returning[], parts: RoomParts): Promise<void> {
  return writeSettles(batch, parts, ({ resolve }, changes) => resolve(changes))
}

async function writeSettles<R extends Completing | Returning>(
  batch: readonly R[],
  parts: RoomParts,
  tell: (request: R, changes: readonly ItemChange[]) => void,
): Promise<void> {
  const late = whenUnknown(parts.batchMsMax, (error) => {
    for (const { reject } of batch) reject(error)
  })
  try {
    const results: readonly SettleResult[] = await parts.writer.write(batch.map(({ command }) => command))
    for (let index = 0; index < batch.length; index++) {
      const request = batch[index] as R
      const result = results[index] as SettleResult
      if (result.isSettled) tell(request, result.changes)
      else request.reject(itemRefused(request.command, result.refused))
    }
  } catch (error) {
    await oneByOne(batch, error, parts, (one) => writeSettles([one], parts, tell))
  } finally {
    late.off()
  }
}
