import { ksuidProblem } from '../../core/ksuid.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** What ids were in systems that this API took the place of: known to be unknown. */
const numericId = /^\d{1,19}$/

/** An id as the letters know it: a letter's own of 27 characters, or a UUID in lower case. Undefined for neither. */
export function parseLetterId(text: string): string | undefined {
  if (uuid.test(text)) return text.toLowerCase()
  return ksuidProblem(text) === undefined ? text : undefined
}

/** The ids of a list, trimmed, each once. A fault names the first that is none. */
export function parseLetterIds(given: readonly string[]): readonly string[] {
  const ids = given.map((text, index) => {
    const trimmed = text.trim()
    const id = parseLetterId(trimmed) ?? (numericId.test(trimmed) ? trimmed : undefined)
    if (id !== undefined) return id
    const message = trimmed === '' ? 'is empty' : 'is neither a letter id of 27 characters nor a UUID'
    throw new InvalidRequest([{ field: `body.ids[${index}]`, message }])
  })
  return [...new Set(ids)]
}

export function checkCount(ids: readonly string[], countMax: number): void {
  if (ids.length <= countMax) return
  const message = `has ${ids.length} entries; at most ${countMax} are allowed`
  throw new InvalidRequest([{ field: 'body.ids', message }])
}
