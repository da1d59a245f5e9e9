export function listLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): listLetters')
}
