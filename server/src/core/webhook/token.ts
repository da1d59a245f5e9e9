/** Compares tokens in a time that does not depend on the first difference. Null: no token was sent. */
export function isSameToken(expected: string, given: string | null): boolean {
  if (given === null) return false
  let difference = expected.length ^ given.length
  for (let at = 0; at < given.length; at++) {
    difference |= (expected.charCodeAt(at % Math.max(expected.length, 1)) || 0) ^ given.charCodeAt(at)
  }
  return difference === 0
}
