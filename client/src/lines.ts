/**
 * Answers that go on for long, read line by line as they come: exports and events. They only ask, so a stream that is
 * cut may be opened again.
 */
import { backoffMs } from './backoff.ts'
import { type CallerParts, type CallOptions, headersOf } from './caller.ts'
import { type Clock, rest } from './clock.ts'
import { errorOf, type FailedCall, failedAnswer, failedConnection, failedInTime } from './failed-call.ts'

export type LinesRequest = Readonly<{ path: string; headers?: Readonly<Record<string, string>> }>

/** Rejects with a RedriveError when the server refuses; a cut is repeated like any call that may be done twice. */
export interface LineReader {
  open(request: LinesRequest, options: CallOptions): AsyncGenerator<string, void, undefined>
  /** Rests before the next try after a cut; throws when there were too many in a row. `tries` counts from 1. */
  restOrFail(cut: unknown, tries: number, options: CallOptions): Promise<void>
}

/** The stream failed in a way that another try may mend. */
export class StreamCut extends Error {
  readonly failed: FailedCall

  constructor(failed: FailedCall) {
    super(failed.facts.message)
    this.failed = failed
  }
}

export function createLineReader(parts: CallerParts): LineReader {
  return {
    open: (request, options) => readLines(parts, request, options),
    restOrFail: async (cut, tries, { signal, retriesMax = parts.retriesMax }) => {
      if (!(cut instanceof StreamCut)) throw cut
      if (tries > retriesMax) throw errorOf(cut.failed, { isRetryable: true, isOutcomeUnknown: false })
      await rest(
        parts.clock,
        Math.max(backoffMs(parts.backoff, tries, parts.random), cut.failed.retryAfterMs),
        signal,
      )
    },
  }
}

async function* readLines(
  parts: CallerParts,
  request: LinesRequest,
  { signal, answerMsMax = parts.answerMsMax }: CallOptions,
): AsyncGenerator<string, void, undefined> {
  signal?.throwIfAborted()
  const ending = new AbortController()
  const onAbort = (): void => ending.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    const answer = await within(parts.clock, answerMsMax, ending, () =>
      parts.fetch(parts.base + request.path, {
        headers: headersOf({ method: 'GET', mayBeDoneTwice: true, ...request }, parts.apiKey),
        signal: ending.signal,
      }),
    )
    if (answer.status === 204) return
    if (answer.status !== 200 || answer.body === null) {
      const failed = failedAnswer(answer.status, parse(await answer.text()), answer.headers)
      if (failed.fate !== 'refused') throw new StreamCut(failed)
      throw errorOf(failed, { isRetryable: false, isOutcomeUnknown: false })
    }
    yield* linesOf(answer.body.getReader(), (read) => within(parts.clock, answerMsMax, ending, read))
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    if (error instanceof StreamCut || (error instanceof Error && error.name === 'RedriveError')) throw error
    throw new StreamCut(failedConnection(error))
  } finally {
    signal?.removeEventListener('abort', onAbort)
    // Also when the caller just leaves its loop: the server then stops as well.
    ending.abort()
  }
}

/** Silence longer than that is a cut: events have a heartbeat, and an export always has something to say. */
async function within<T>(
  clock: Clock,
  ms: number,
  ending: AbortController,
  work: () => Promise<T>,
): Promise<T> {
  let isTooLate = false
  const timer = clock.setTimer(() => {
    isTooLate = true
    ending.abort()
  }, ms)
  try {
    return await work()
  } catch (error) {
    throw isTooLate ? new StreamCut(failedInTime(ms)) : error
  } finally {
    clock.clearTimer(timer)
  }
}

type Chunk = Readonly<{ done: boolean; value?: Uint8Array | undefined }>

async function* linesOf(
  reader: Readonly<{ read(): Promise<Chunk> }>,
  bounded: (read: () => Promise<Chunk>) => Promise<Chunk>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  // Parts of one line are kept apart until it ends: adding a long one up piece by piece would take its square.
  let parts: string[] = []
  for (;;) {
    const { done, value } = await bounded(() => reader.read())
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not ours, whatever it is: the status tells what that means.
    return undefined
  }
}
