/** Requests that settle leases (complete, retry, extend), and how a batch of them is written. */
import type { Complete, Extend, ItemChange, Retry, SettleResult } from '../../storage/contract/items.ts'
import type { QueueRuntimeParts } from '../queues/queue-runtime-parts.ts'
import { runWhenOutcomeUnknown } from '../timing/deadline.ts'
import type { Request } from './call-lane.ts'
import { createItemRefusedError } from './item-refused-error.ts'
import { handleRejectedBatch } from './rejected-batch.ts'

export type CompleteRequest = Request<void> & Readonly<{ command: Complete }>
/** A request to retry or extend. */
export type SettleRequest = Request<readonly ItemChange[]> & Readonly<{ command: Retry | Extend }>

export function writeCompletes(batch: readonly CompleteRequest[], parts: QueueRuntimeParts): Promise<void> {
  return write(batch, parts, ({ resolve }) => resolve())
}

export function writeSettles(batch: readonly SettleRequest[], parts: QueueRuntimeParts): Promise<void> {
  return write(batch, parts, ({ resolve }, changes) => resolve(changes))
}

async function write<R extends CompleteRequest | SettleRequest>(
  batch: readonly R[],
  parts: QueueRuntimeParts,
  resolve: (request: R, changes: readonly ItemChange[]) => void,
): Promise<void> {
  const late = runWhenOutcomeUnknown(parts.batchMsMax, (error) => {
    for (const { reject } of batch) reject(error)
  })
  try {
    const results: readonly SettleResult[] = await parts.writer.write(batch.map(({ command }) => command))
    for (let index = 0; index < batch.length; index++) {
      const request = batch[index] as R
      const result = results[index] as SettleResult
      if (result.isSettled) resolve(request, result.changes)
      else request.reject(createItemRefusedError(request.command, result.refused))
    }
  } catch (error) {
    await handleRejectedBatch(batch, error, parts, (request) => write([request], parts, resolve))
  } finally {
    late.cancel()
  }
}
