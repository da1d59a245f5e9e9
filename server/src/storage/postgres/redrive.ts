export function redriveLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): redriveLetters')
}
