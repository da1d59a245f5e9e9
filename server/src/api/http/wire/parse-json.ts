import { KnownError } from '../../../errors.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

const bytesByValue = new WeakMap<object, Buffer>()

/** An empty body is no body: its schema says whether that will do. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    if (typeof value === 'object' && value !== null) bytesByValue.set(value, bytes)
    return value
  } catch (error) {
    // The parser's own sentence quotes the body, so it stays in the log.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    const where = position === undefined ? '' : ` (at character ${position})`
    throw new KnownError('BAD_REQUEST', `the body is not readable JSON${where}`, error)
  }
}

/** What a body was parsed from, for those who need what parsing loses: digits of large numbers, repeated names. */
export function readJsonText(body: object): string {
  const bytes = bytesByValue.get(body)
  return bytes === undefined ? JSON.stringify(body) : utf8.decode(bytes)
}
