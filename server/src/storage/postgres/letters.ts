export function getLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): getLetters')
}

export function getArchivedLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): getArchivedLetters')
}

export function findLettersByUuid(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): findLettersByUuid')
}

export function listArchivedLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): listArchivedLetters')
}

export function discardLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): discardLetters')
}

export function restoreLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): restoreLetters')
}
