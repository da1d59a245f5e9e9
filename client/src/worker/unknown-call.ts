import { RedriveError } from '../error.ts'

/** The server has no such call. A queue or an item that is not there has a code of its own. */
export function isUnknownCall(error: unknown): boolean {
  if (!(error instanceof RedriveError)) return false
  return error.code === 'NOT_FOUND' || (error.code === 'UNKNOWN' && [404, 405, 501].includes(error.status))
}
