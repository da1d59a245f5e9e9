/** The two ways to write a body. Request and answer are chosen independently of each other. */
export type Format = 'json' | 'protobuf'

export const contentTypes: Readonly<Record<Format, string>> = {
  json: 'application/json',
  protobuf: 'application/protobuf',
}

/**
 * The format that a Content-Type or Accept header names, or undefined for one that we do not speak. Only
 * the first name counts; what follows `;` or `,` is ignored.
 */
export function parseFormat(header: string | undefined): Format | undefined {
  // The usual values as they usually are written, before taking anything apart.
  if (header === undefined || header === 'application/json' || header === '*/*') return 'json'
  if (header === 'application/protobuf') return 'protobuf'
  const end = header.search(/[;,]/)
  switch ((end === -1 ? header : header.slice(0, end)).trim().toLowerCase()) {
    case 'application/protobuf':
      return 'protobuf'
    case 'application/json':
    case 'application/*':
    case '*/*':
    case '':
      return 'json'
    default:
      return undefined
  }
}
