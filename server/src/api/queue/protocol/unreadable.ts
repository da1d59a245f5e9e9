import { KnownError } from '../../../errors.ts'

/** A body, a Content-Type or an Accept that cannot be understood. */
export function contentError(what: string, cause?: unknown): KnownError {
  return new KnownError('CONTENT_UNREADABLE', what, cause)
}
