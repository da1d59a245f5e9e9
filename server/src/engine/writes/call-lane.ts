import { KnownError } from '../../errors.ts'
import { BatchLane } from '../../storage/shared/batch-lane.ts'
import { SharedTimer } from '../timing/shared-timer.ts'

/** A call that waits to be written. */
export type Request<T> = {
  /** Numbers the calls of a queue, so that held calls can be processed in order of arrival. */
  readonly arrival: number
  readonly weight: number
  /** How long the call may wait; Infinity: without limit. */
  readonly timeoutMs: number
  /** When the call gives up, as a time of `performance.now()`. Set by the lane. */
  deadline: number
  resolve(value: T): void
  reject(error: unknown): void
}

/**
 * Collects calls and writes them in batches. A call ends when its time is over or its signal aborts while it
 * waits. Once it is being written, it is answered with the outcome, however long that takes.
 */
export class CallLane<R extends Request<never>> extends BatchLane<R> {
  // One timer for all calls: nearly all of them are written long before their deadline.
  readonly #timer = new SharedTimer((now) => this.#rejectLate(now))

  call(request: R, signal: AbortSignal | undefined): void {
    if (signal?.aborted) {
      request.reject(signal.reason)
      return
    }
    this.add(request)
    if (request.timeoutMs < Number.POSITIVE_INFINITY) {
      const now = performance.now()
      request.deadline = now + request.timeoutMs
      this.#timer.wakeBy(request.deadline, now)
    }
    if (signal !== undefined) this.#rejectOnAbort(request, signal)
  }

  /** For a lane without calls that gets no further ones. */
  stop(): void {
    this.#timer.stop()
  }

  #rejectLate(now: number): number {
    let next = Number.POSITIVE_INFINITY
    const late = this.removeWhere(({ deadline }) => {
      if (deadline <= now) return true
      next = Math.min(next, deadline)
      return false
    })
    for (const { reject, timeoutMs } of late)
      reject(new KnownError('CALL_TIMEOUT', `not done within ${timeoutMs} ms`))
    return next
  }

  #rejectOnAbort(request: R, signal: AbortSignal): void {
    const { resolve, reject } = request
    const onAbort = () => {
      if (this.remove(request)) reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    request.resolve = (value) => {
      signal.removeEventListener('abort', onAbort)
      resolve(value)
    }
    request.reject = (error) => {
      signal.removeEventListener('abort', onAbort)
      reject(error)
    }
  }
}
