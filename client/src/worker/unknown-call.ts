import { RedriveError } from '../http/error.ts'

/** True if the server does not have the call. A missing queue or item has a code of its own. */
export function isUnknownCall(error: unknown): boolean {
  if (!(error instanceof RedriveError)) return false
  return error.code === 'NOT_FOUND' || (error.code === 'UNKNOWN' && [404, 405, 501].includes(error.status))
}
