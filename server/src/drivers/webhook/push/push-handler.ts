/**
 * Follows one push through undici and settles it with its attempt.
 *
 * The status decides the outcome: once the headers have arrived, a slow, endless or broken body changes
 * nothing. The first 4 KiB of the body are kept. A short rest is read so that the connection can be used
 * again; after that the push is aborted, which ends its connection.
 */
import type { Dispatcher } from 'undici'
import { type Attempt, type PushFailure, responseBytesMax } from '../../../core/webhook/attempt.ts'
import { describeError, describeStatusFailure, PushTimeoutError } from './push-failure.ts'

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

export type PushTimeouts = Readonly<{ timeoutMs: number; headersTimeoutMs: number; bodyTimeoutMs: number }>

/** The connection that a push uses; shared by the pushes of one connection. */
export type Connection = { address: string | null }

type Response = { status: number; contentType: string | null; retryAfter: string | null }

/** How much of a body is read at most. */
const drainedBytesMax = 64 * 1_024
const headerTextMax = 256

export class PushHandler implements Dispatcher.DispatchHandler {
  /** Set by the client that sends this push (origin-pools.ts). */
  connection: Connection | null = null
  readonly #settle: (attempt: Attempt) => void
  readonly #onEnd: () => void
  readonly #host: string
  readonly #timeouts: PushTimeouts
  readonly #startedMs = performance.now()
  readonly #totalTimer: NodeJS.Timeout
  #stageTimer: NodeJS.Timeout | undefined
  #controller: Dispatcher.DispatchController | undefined
  #abortReason: Error | undefined
  #response: Response | undefined
  #latencyMs: number | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #isSettled = false
  #isEnded = false

  /**
   * `settle` is called once, with the attempt. `onEnd` is called once, when the push uses its connection no
   * more.
   */
  constructor(host: string, timeouts: PushTimeouts, settle: (attempt: Attempt) => void, onEnd: () => void) {
    this.#host = host
    this.#timeouts = timeouts
    this.#settle = settle
    this.#onEnd = onEnd
    this.#totalTimer = setTimeout(() => {
      const message = `${host} did not respond within ${timeouts.timeoutMs} ms`
      this.abort(new PushTimeoutError('PUSH_TIMEOUT', message))
    }, timeouts.timeoutMs)
  }

  abort(reason: Error): void {
    this.#abortReason ??= reason
    // A push that waits for its connection settles now; it is aborted when undici starts it.
    this.#settleNow(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#abortReason !== undefined) {
      controller.abort(this.#abortReason)
      return
    }
    const { headersTimeoutMs, timeoutMs } = this.#timeouts
    if (headersTimeoutMs >= timeoutMs) return
    this.#stageTimer = setTimeout(() => {
      const message = `${this.#host} did not send its headers within ${headersTimeoutMs} ms`
      this.abort(new PushTimeoutError('HEADERS_TIMEOUT', message))
    }, headersTimeoutMs)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // 103 and other interim answers are not the response.
    if (status < 200) return
    clearTimeout(this.#stageTimer)
    this.#latencyMs = performance.now() - this.#startedMs
    this.#response = {
      status,
      contentType: readHeader(headers, 'content-type'),
      retryAfter: readHeader(headers, 'retry-after'),
    }
    this.#stageTimer = setTimeout(
      () => this.abort(new PushTimeoutError('PUSH_TIMEOUT', 'the body took too long')),
      this.#timeouts.bodyTimeoutMs,
    )
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = responseBytesMax - this.#bytes
    // A copy, because a part of a large chunk would keep all of it in memory.
    if (room > 0) this.#chunks.push(Buffer.from(chunk.subarray(0, room)))
    this.#bytes += chunk.length
    if (this.#bytes > responseBytesMax) this.#settleNow(undefined)
    if (this.#bytes > drainedBytesMax) controller.abort(new Error('the body is larger than it may be'))
  }

  onResponseEnd(): void {
    clearTimeout(this.#stageTimer)
    clearTimeout(this.#totalTimer)
    // undici waits for a turn of the event loop before it uses a connection again. A push that starts earlier
    // would open another connection.
    setImmediate(() => setImmediate(() => this.#complete()))
  }

  #complete(): void {
    this.#settleNow(undefined, true)
    this.#end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#settleNow(this.#abortReason ?? error)
    this.#end()
  }

  #end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearTimeout(this.#stageTimer)
    clearTimeout(this.#totalTimer)
    this.#onEnd()
  }

  #settleNow(error: Error | undefined, isComplete = false): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#settle(this.#createAttempt(error, isComplete))
  }

  #createAttempt(error: Error | undefined, isComplete: boolean): Attempt {
    const response = this.#response
    const facts = {
      latencyMs: Math.round((this.#latencyMs ?? performance.now() - this.#startedMs) * 1_000) / 1_000,
      address: this.connection?.address ?? null,
    }
    if (response === undefined) {
      const failure = describeError(error ?? new Error('no response'), this.#host)
      return { isDelivered: false, ...facts, status: null, response: null, failure }
    }
    const { status } = response
    const body = {
      bytes: Buffer.concat(this.#chunks),
      contentType: response.contentType,
      isTruncated: !isComplete || this.#bytes > responseBytesMax,
    }
    this.#chunks = []
    if (status >= 200 && status < 300) {
      return { isDelivered: true, ...facts, status, response: body, failure: null }
    }
    const failure: PushFailure = describeStatusFailure(status, response.retryAfter)
    return { isDelivered: false, ...facts, status, response: body, failure }
  }
}

function readHeader(headers: Headers, name: string): string | null {
  const value = headers[name]
  const text = Array.isArray(value) ? value[0] : value
  return text === undefined ? null : text.slice(0, headerTextMax)
}
