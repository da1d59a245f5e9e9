/** JSON can be read at any depth, but writing it again needs a call per level: beyond this it is left alone. */
export const nestingMax = 500

/** Level by level, without recursion: that is what would fail. */
export function isNestedTooDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; depth <= nestingMax; depth++) {
    const below: unknown[] = []
    for (const part of level) {
      if (typeof part !== 'object' || part === null) continue
      for (const each of Object.values(part)) if (typeof each === 'object' && each !== null) below.push(each)
    }
    if (below.length === 0) return false
    level = below
  }
  return true
}
