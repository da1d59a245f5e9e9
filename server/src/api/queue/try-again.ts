import { KnownError } from '../../errors.ts'
import { Fault } from './fault.ts'
import type { Call } from './queue-route.ts'
import { tryAgain } from './render-error.ts'

/**
 * For complete and retry: whatever the store could not do, the client is told to repeat. What nobody
 * foresaw is logged whole, since the answer does not show it.
 */
export async function orTryAgain<T>({ context, request }: Call, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof KnownError && error.status < 500) throw error
    if (error instanceof KnownError && error.code.endsWith('SHUTTING_DOWN')) throw error
    const isForeseen = error instanceof KnownError
    if (!isForeseen) context.log.error({ request_id: request.id, err: error }, 'items could not be settled')
    throw new Fault(454, tryAgain, isForeseen ? error.code : 'INTERNAL', error)
  }
}
