import { KnownError } from '../errors.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** An empty body is no body: its schema says whether that will do. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch (error) {
    // The parser's own sentence quotes the body, so it stays in the log.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    const where = position === undefined ? '' : ` (at character ${position})`
    throw new KnownError('BAD_REQUEST', `the body is not readable JSON${where}`, error)
  }
}
