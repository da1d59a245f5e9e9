import { KnownError } from '../../../errors.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The body that each parsed value came from. */
const bytesByValue = new WeakMap<object, Buffer>()

/** Returns undefined for an empty body; the schema decides whether a body is required. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    if (typeof value === 'object' && value !== null) bytesByValue.set(value, bytes)
    return value
  } catch (error) {
    // The parser's message quotes the body, so only the log has it.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    const where = position === undefined ? '' : ` (at character ${position})`
    throw new KnownError('BAD_REQUEST', `the body is not valid JSON${where}`, error)
  }
}

/**
 * Returns the text of a parsed body, with the details that parsing loses: digits of large numbers, repeated
 * names.
 */
export function readJsonText(body: object): string {
  const bytes = bytesByValue.get(body)
  return bytes === undefined ? JSON.stringify(body) : utf8.decode(bytes)
}
