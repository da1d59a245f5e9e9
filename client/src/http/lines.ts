/**
 * Reads long answers (exports and events) line by line as they arrive. Streams only read data, so an
 * interrupted stream can safely be opened again.
 */

import {
  describeFailedAnswer,
  describeFailedConnection,
  describeTimeout,
  type FailedCall,
  toError,
} from '../letters/failed-call.ts'
import { computeBackoffMs } from './backoff.ts'
import { buildHeaders, type CallerParts, type CallOptions, parseJson } from './caller.ts'
import { type Clock, sleep } from './clock.ts'

export type LinesRequest = Readonly<{ path: string; headers?: Readonly<Record<string, string>> }>

export interface LineReader {
  /**
   * Throws StreamInterrupted if opening the stream again can help, and a RedriveError if the server refuses.
   */
  open(request: LinesRequest, options: CallOptions): AsyncGenerator<string, void, undefined>
  /**
   * Waits before the next try. Rethrows any error other than StreamInterrupted, and fails after `retriesMax`
   * interruptions in a row. `tries` counts from 1.
   */
  waitBeforeRetry(error: unknown, tries: number, options: CallOptions): Promise<void>
}

/** The stream failed, and opening it again can succeed. */
export class StreamInterrupted extends Error {
  readonly failed: FailedCall

  constructor(failed: FailedCall) {
    super(failed.facts.message)
    this.failed = failed
  }
}

export function createLineReader(parts: CallerParts): LineReader {
  return {
    open: (request, options) => readLines(parts, request, options),
    waitBeforeRetry: async (error, tries, { signal, retriesMax = parts.retriesMax }) => {
      if (!(error instanceof StreamInterrupted)) throw error
      const { failed } = error
      if (tries > retriesMax) throw toError(failed, { isRetryable: true, isOutcomeUnknown: false })
      const delayMs = computeBackoffMs(parts.backoff, tries, parts.random)
      await sleep(parts.clock, Math.max(delayMs, failed.retryAfterMs), signal)
    },
  }
}

async function* readLines(
  parts: CallerParts,
  request: LinesRequest,
  { signal, answerMsMax = parts.answerMsMax }: CallOptions,
): AsyncGenerator<string, void, undefined> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const onAbort = (): void => controller.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    const answer = await withTimeout(parts.clock, answerMsMax, controller, () =>
      parts.fetch(parts.base + request.path, {
        headers: buildHeaders({ method: 'GET', isRepeatable: true, ...request }, parts.apiKey),
        signal: controller.signal,
      }),
    )
    if (answer.status === 204) return
    if (answer.status !== 200 || answer.body === null) {
      const failed = describeFailedAnswer(answer.status, parseJson(await answer.text()), answer.headers)
      if (failed.kind !== 'refused') throw new StreamInterrupted(failed)
      throw toError(failed, { isRetryable: false, isOutcomeUnknown: false })
    }
    yield* splitLines(answer.body.getReader(), (read) =>
      withTimeout(parts.clock, answerMsMax, controller, read),
    )
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    if (error instanceof StreamInterrupted || (error instanceof Error && error.name === 'RedriveError'))
      throw error
    throw new StreamInterrupted(describeFailedConnection(error))
  } finally {
    signal?.removeEventListener('abort', onAbort)
    // Also ends the request if the caller leaves its loop early, so that the server stops sending.
    controller.abort()
  }
}

/** A silent stream counts as interrupted: events have a heartbeat, and an export sends continuously. */
async function withTimeout<T>(
  clock: Clock,
  ms: number,
  controller: AbortController,
  work: () => Promise<T>,
): Promise<T> {
  let isTimedOut = false
  const timer = clock.setTimer(() => {
    isTimedOut = true
    controller.abort()
  }, ms)
  try {
    return await work()
  } catch (error) {
    throw isTimedOut ? new StreamInterrupted(describeTimeout(ms)) : error
  } finally {
    clock.clearTimer(timer)
  }
}

type Chunk = Readonly<{ done: boolean; value?: Uint8Array | undefined }>

async function* splitLines(
  reader: Readonly<{ read(): Promise<Chunk> }>,
  readWithTimeout: (read: () => Promise<Chunk>) => Promise<Chunk>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  // Join the pieces of a line once, at its end: appending each piece to a string takes quadratic time.
  let parts: string[] = []
  for (;;) {
    const { done, value } = await readWithTimeout(() => reader.read())
    if (done) return
    const pieces = decoder.decode(value, { stream: true }).split('\n')
    for (const [index, piece] of pieces.entries()) {
      parts.push(piece)
      if (index === pieces.length - 1) break
      yield parts.join('')
      parts = []
    }
  }
}
