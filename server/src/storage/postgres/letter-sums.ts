export function countLetters(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): countLetters')
}

export function countOpenSince(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): countOpenSince')
}

export function groupArrivals(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): groupArrivals')
}

export function listGroups(..._: unknown[]): Promise<never> {
  throw new Error('TODO(#4): listGroups')
}
