import { findKsuidProblem } from '../../core/ids/ksuid.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** Ids of the systems whose API this is. They are well-formed, but match no letter. */
const numericId = /^\d{1,19}$/

/** Accepts a letter's own id of 27 characters or its UUID, which becomes lower case. Else undefined. */
export function parseLetterId(text: string): string | undefined {
  if (uuid.test(text)) return text.toLowerCase()
  return findKsuidProblem(text) === undefined ? text : undefined
}

/** Parses a list of ids: trims them and removes duplicates. The error names the first invalid id. */
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
