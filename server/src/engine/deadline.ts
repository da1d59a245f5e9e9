import { KnownError } from '../errors.ts'

/** Runs `tell` when it was not called off in time. */
export function whenLate(msMax: number, tell: () => void): Readonly<{ off(): void }> {
  let isOff = false
  const timer = setTimeout(() => {
    // An answer that came while this process was busy is in time.
    setImmediate(() => {
      if (!isOff) tell()
    })
  }, msMax)
  return {
    off: () => {
      isOff = true
      clearTimeout(timer)
    },
  }
}

/** A read that the store does not answer in time is given up: nothing depends on it. */
export async function inTime<T>(msMax: number, reading: Promise<T>): Promise<T> {
  let late: Readonly<{ off(): void }> | undefined
  const tooLate = new Promise<never>((_, reject) => {
    late = whenLate(msMax, () => {
      const sentence = `the store did not answer within ${msMax} ms`
      reject(new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence))
    })
  })
  try {
    return await Promise.race([reading, tooLate])
  } finally {
    late?.off()
  }
}
