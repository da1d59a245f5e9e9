/** The depth up to which JSON is written: parsing works at any depth, but writing needs a call per level. */
export const nestingMax = 500

/** Reads level by level, because recursion would fail for exactly these values. */
export function isNestedTooDeep(value: unknown): boolean {
  let level = [value]
  for (let depth = 0; depth <= nestingMax; depth++) {
    level = level.flatMap(listChildren)
    if (level.length === 0) return false
  }
  return true
}

function listChildren(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).filter((child) => typeof child === 'object' && child !== null)
}
