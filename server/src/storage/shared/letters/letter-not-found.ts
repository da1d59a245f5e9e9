import { KnownError } from '../../../errors.ts'

/** For a command that changes a live letter. */
export function createLetterNotFoundError(letterId: string): KnownError {
  return new KnownError('LETTER_NOT_FOUND', `letter ${letterId} does not exist or is archived`)
}

/** For a dead record that was taken for that of a redrive. */
export function createRedriveFailedError(letterId: string, number: number): KnownError {
  return new KnownError('LETTER_NOT_FOUND', `redrive ${number} of letter ${letterId} has failed already`)
}
