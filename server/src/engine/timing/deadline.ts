/** Deadlines for the store: callers get an error instead of waiting for a store that does not answer. */
import { KnownError } from '../../errors.ts'

type Cancellable = Readonly<{ cancel(): void }>

/** Calls `onLate` after `msMax`, unless it is cancelled before. */
export function runWhenLate(msMax: number, onLate: () => void): Cancellable {
  let isCancelled = false
  const timer = setTimeout(() => {
    // An answer that arrived while this process was busy is in time: let it be handled first.
    setImmediate(() => {
      if (!isCancelled) onLate()
    })
  }, msMax)
  return {
    cancel: () => {
      isCancelled = true
      clearTimeout(timer)
    },
  }
}

/**
 * Calls `onUnknown` with the error for the callers of a write that is late. The write goes on, and its
 * results are handled when it is done. `advice` says what to do if not simply to repeat the call.
 */
export function runWhenOutcomeUnknown(
  msMax: number,
  onUnknown: (error: KnownError) => void,
  advice = '',
): Cancellable {
  return runWhenLate(msMax, () => {
    const unknown = `the store did not answer within ${msMax} ms, so whether the request was done is unknown`
    const sentence = advice === '' ? unknown : `${unknown}: ${advice}`
    onUnknown(new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence))
  })
}

/** Gives up a read that the store does not answer in time. */
export async function readWithin<T>(msMax: number, reading: Promise<T>): Promise<T> {
  let late: Cancellable | undefined
  const tooLate = new Promise<never>((_, reject) => {
    late = runWhenLate(msMax, () => {
      const sentence = `the store did not answer within ${msMax} ms`
      reject(new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence))
    })
  })
  try {
    return await Promise.race([reading, tooLate])
  } finally {
    late?.cancel()
  }
}

export type WriteFollowUp<T> = Readonly<{
  /** For the caller of a late write. */
  advice: string
  /** Called when the write is done, also if that is too late for its caller. Never rejects. */
  onDone?(result: T): Promise<void>
  /** Called with the error of a write that failed after its caller gave up. */
  onLateError(error: unknown): void
}>

/** Rejects if the store did not do a write in time. Otherwise resolves after `onDone`. */
export async function writeWithin<T>(
  msMax: number,
  writing: Promise<T>,
  { advice, onDone, onLateError }: WriteFollowUp<T>,
): Promise<T> {
  const followed = writing.then(onDone, () => {})
  let late: Cancellable | undefined
  const tooLate = new Promise<never>((_, reject) => {
    const onUnknown = (error: KnownError) => {
      writing.catch(onLateError)
      reject(error)
    }
    late = runWhenOutcomeUnknown(msMax, onUnknown, advice)
  })
  try {
    const result = await Promise.race([writing, tooLate])
    await followed
    return result
  } finally {
    late?.cancel()
  }
}
