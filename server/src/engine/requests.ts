/** Requests that wait in a lane until they are written: how they are given up, refused, and told what is unknown. */
import { KnownError } from '../errors.ts'
import type { Lane } from '../storage/lane.ts'
import { whenLate } from './in-time.ts'
import type { RoomParts } from './room-parts.ts'

export type Request<T> = {
  /** Counts those who call, so that what was held can be done in the order in which it came. */
  readonly arrival: number
  readonly weight: number
  resolve(value: T): void
  reject(error: unknown): void
}
export type CallTime = Readonly<{ timeoutMs?: number | undefined; signal?: AbortSignal | undefined }>

/** Puts it into the lane, and takes it out again when its time is over or its signal aborts. */
export function addInTime<T, R extends Request<T>>(
  lane: Lane<R>,
  request: R,
  { timeoutMs, signal }: CallTime,
): void {
  lane.add(request)
  if (timeoutMs === undefined && signal === undefined) return
  const { resolve, reject } = request
  // Once it is being written it is answered with what became of it, however long that takes.
  const giveUp = (error: unknown) => {
    if (lane.withdraw(request)) reject(error)
  }
  const onAbort = () => giveUp(signal?.reason)
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => giveUp(new KnownError('CALL_TIMEOUT', `not done within ${timeoutMs} ms`)), timeoutMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  const done = () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
  request.resolve = (value) => {
    done()
    resolve(value)
  }
  request.reject = (error) => {
    done()
    reject(error)
  }
}

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
    tell(new KnownError('STORE_UNAVAILABLE', sentence))
  })
}
