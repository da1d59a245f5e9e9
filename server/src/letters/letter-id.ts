import { ksuidProblem, ksuidToUuid } from '../core/ksuid.ts'

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** What a letter is known by. */
export function isRootId(id: string): boolean {
  return ksuidProblem(id) === undefined
}

/** The UUID that stands for a letter, from its root id or itself; undefined for what is neither. */
export function letterUuidOf(id: string): string | undefined {
  if (isRootId(id)) return ksuidToUuid(id)
  const text = id.toLowerCase()
  return uuidPattern.test(text) ? text : undefined
}
