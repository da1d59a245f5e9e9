/** What becomes of a batch of requests when the store refuses it, or does not answer. */
import { KnownError } from '../errors.ts'
import type { Request } from './call-lane.ts'
import { whenLate } from './deadline.ts'
import type { RoomParts } from './queue-runtime-parts.ts'

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

/**
 * Tells when the store has not answered for too long. What it writes goes on, and is booked when it is done. `advice`: what
 * to do when nobody knows, where that is not to repeat.
 */
export function whenUnknown(
  batchMsMax: number,
  tell: (error: KnownError) => void,
  advice = '',
): Readonly<{ off(): void }> {
  return whenLate(batchMsMax, () => {
    const unknown = `the store did not answer within ${batchMsMax} ms, so whether the request was done is unknown`
    const sentence = advice === '' ? unknown : `${unknown}: ${advice}`
    tell(new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence))
  })
}

/** The same for one write. `onLate`: what went wrong with it when nobody waited any more. */
export async function knownInTime<T>(
  batchMsMax: number,
  writing: Promise<T>,
  advice: string,
  onLate: (error: unknown) => void,
): Promise<T> {
  let late: Readonly<{ off(): void }> | undefined
  const tooLate = new Promise<never>((_, reject) => {
    late = whenUnknown(
      batchMsMax,
      (unknown) => {
        writing.catch(onLate)
        reject(unknown)
      },
      advice,
    )
  })
  try {
    return await Promise.race([writing, tooLate])
  } finally {
    late?.off()
  }
}
