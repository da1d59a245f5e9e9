/** What becomes of a batch of requests when the store refuses it, or does not answer. */
import { KnownError } from '../errors.ts'
import type { Request } from './call-lane.ts'
import { whenLate } from './in-time.ts'
import type { RoomParts } from './room-parts.ts'

/** One request that cannot be obeyed rejects the whole list: alone, each gets its own answer. */
export async function oneByOne<R extends Request<never>>(
  batch: readonly R[],
  error: unknown,
  { onRefused }: Pick<RoomParts, 'onRefused'>,
  work: (one: R) => Promise<void>,
): Promise<void> {
  const isOfOne = error instanceof KnownError && error.status < 500
  if (batch.length > 1 && isOfOne) {
    for (const one of batch) await work(one)
    return
  }
  onRefused(error)
  for (const { reject } of batch) reject(error)
}

/** Tells when the store has not answered for too long. What it writes goes on, and is booked when it is done. */
export function whenUnknown(
  batchMsMax: number,
  tell: (error: KnownError) => void,
): Readonly<{ off(): void }> {
  return whenLate(batchMsMax, () => {
    const sentence = `the store did not answer within ${batchMsMax} ms, so whether the request was done is unknown`
    tell(new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence))
  })
}
