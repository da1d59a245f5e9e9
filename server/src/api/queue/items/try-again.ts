import { KnownError } from '../../../errors.ts'
import { Fault } from '../protocol/fault.ts'
import { tryAgain } from '../protocol/render-error.ts'

/**
 * For complete and retry: whatever the store could not do, the client is told to repeat. What nobody
 * foresaw is an INTERNAL error nonetheless, and so is logged whole.
 */
export async function translateStoreErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof KnownError)) throw new Fault(454, tryAgain, 'INTERNAL', error)
    if (error.status < 500 || error.code.endsWith('SHUTTING_DOWN')) throw error
    throw new Fault(454, tryAgain, error.code, error)
  }
}
