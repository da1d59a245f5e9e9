import { expect } from 'vitest'
import { type ErrorCode, KnownError } from '../../../src/errors.ts'

/** Expects a rejection with this code and a message of one readable sentence. Returns the error. */
export async function expectRefusal(promise: Promise<unknown>, code: ErrorCode): Promise<KnownError> {
  const outcome = await promise.then(
    (value) => new Error(`was not refused but returned ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  expectKnown(outcome, code)
  return outcome as KnownError
}

export function expectKnown(error: unknown, code: ErrorCode): void {
  if (!(error instanceof KnownError)) throw new Error(`expected a KnownError ${code}`, { cause: error })
  expect({ code: error.code, message: error.message }).toEqual({ code, message: error.message })
  expect(error.message, 'a sentence, not a code').toMatch(/\S+ \S+ \S+/)
  expect(error.message, 'one line').not.toContain('\n')
}
