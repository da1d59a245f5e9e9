import { handleOneByOne } from '../../storage/shared/batch-lane.ts'
import type { QueueRuntimeParts } from '../queues/queue-runtime-parts.ts'
import type { Request } from './call-lane.ts'

/**
 * Handles a batch that the store rejected. One bad request rejects all of them, so if the error is a caller's
 * fault each request is written alone and gets its own answer.
 */
export async function handleRejectedBatch<R extends Request<never>>(
  batch: readonly R[],
  error: unknown,
  { onRejected }: Pick<QueueRuntimeParts, 'onRejected'>,
  writeOne: (request: R) => Promise<void>,
): Promise<void> {
  if (await handleOneByOne(batch, error, writeOne)) return
  onRejected(error)
  for (const { reject } of batch) reject(error)
}
