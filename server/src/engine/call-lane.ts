import { KnownError } from '../errors.ts'
import { BatchLane } from '../storage/shared/batch-lane.ts'
import { Alarm } from './shared-timer.ts'

/** A call that waits to be written. */
export type Request<T> = {
  /** Counts those who call, so that what was held can be done in the order in which it came. */
  readonly arrival: number
  readonly weight: number
  /** How long it may wait; Infinity: as long as it takes. */
  readonly timeoutMs: number
  /** Until when, as `performance.now()` tells it. Its lane knows. */
  deadline: number
  resolve(value: T): void
  reject(error: unknown): void
}

/**
 * A lane of calls, each given up when its time is over or its signal aborts while it waits. Once it is being
 * written it is answered with what became of it, however long that takes.
 */
export class CallLane<R extends Request<never>> extends BatchLane<R> {
  // One timer for all of them: nearly all are written long before their time.
  readonly #alarm = new Alarm((now) => this.#endLate(now))

  call(request: R, signal: AbortSignal | undefined): void {
    if (signal?.aborted) {
      request.reject(signal.reason)
      return
    }
    this.add(request)
    if (request.timeoutMs < Number.POSITIVE_INFINITY) {
      const now = performance.now()
      request.deadline = now + request.timeoutMs
      this.#alarm.by(request.deadline, now)
    }
    if (signal !== undefined) this.#endWith(request, signal)
  }

  /** Nobody waits any more, nor will. */
  off(): void {
    this.#alarm.off()
  }

  #endLate(now: number): number {
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

  #endWith(request: R, signal: AbortSignal): void {
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
