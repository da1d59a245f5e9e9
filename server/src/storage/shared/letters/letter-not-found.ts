import { KnownError } from '../../../errors.ts'

/** For a command that changes a live letter. */
export function createLetterNotFoundError(letterId: string): KnownError {
  return new KnownError('LETTER_NOT_FOUND', `letter ${letterId} does not exist or is archived`)
}
