import { KnownError } from '../../../errors.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The text of a JSON body. */
export function decodeJson(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw new KnownError('BAD_REQUEST', 'the body is not valid JSON', error)
  }
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // The parser's message quotes the body, so only the log has it.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    const where = position === undefined ? '' : ` (at character ${position})`
    throw new KnownError('BAD_REQUEST', `the body is not valid JSON${where}`, error)
  }
}
