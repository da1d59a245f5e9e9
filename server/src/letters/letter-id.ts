import { parseLetterId } from '../core/ids.ts'
import { ksuidToUuid } from '../core/ksuid.ts'

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A letter is identified by the root id: the id that its item had first. */
export function isRootId(id: string): boolean {
  return parseLetterId(id) !== undefined
}

/** The UUID of a letter, from its root id or UUID; undefined for other text. */
export function toLetterUuid(id: string): string | undefined {
  if (isRootId(id)) return ksuidToUuid(id)
  const text = id.toLowerCase()
  return uuidPattern.test(text) ? text : undefined
}
